/** Draws the figures of `data-chart` as stacked bars. Without this script, the tables hold the same figures. */
const COLORS = {
  light: ['#2f6fb5', '#c4622d', '#3f8f5f', '#8a5bb0', '#b08a1e', '#2b8f96', '#b24a73', '#6b7682', '#b9c0c8'],
  dark: ['#6aa5e6', '#ef9a63', '#77c796', '#bd94e0', '#e0bd5b', '#62c4cb', '#e788ad', '#9aa5b1', '#5d6772'],
}
const place = document.getElementById('chart')
const { unit, times, spanSeconds, series } = JSON.parse(place.dataset.chart)
const isDark = matchMedia('(prefers-color-scheme: dark)')
const HEIGHT = 280
const BAR_SHARE = 0.8

/** Sums from the foot up: the first bar drawn is the tallest. */
function stacked() {
  const sums = times.map(() => 0)
  return series.map(({ values }) =>
    values.map((value, index) => {
      sums[index] += value
      return sums[index]
    }),
  )
}

function draw() {
  place.replaceChildren()
  if (series.length === 0) return
  const colors = isDark.matches ? COLORS.dark : COLORS.light
  const style = getComputedStyle(document.documentElement)
  const axis = {
    stroke: style.getPropertyValue('--dim'),
    grid: { stroke: style.getPropertyValue('--line'), width: 1 },
    ticks: { stroke: style.getPropertyValue('--line'), width: 1 },
  }
  const sums = stacked()
  // The last one has the tallest bars, so it is drawn first.
  const order = series.map((_, index) => index).reverse()
  const shown = (_chart, _sum, at, index) =>
    index === null ? '' : `${+series[order[at - 1]].values[index].toPrecision(6)} ${unit}`
  new uPlot(
    {
      width: place.clientWidth,
      height: HEIGHT,
      tzDate: seconds => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
      cursor: { drag: { x: false, y: false } },
      scales: {
        x: { range: (_, from, to) => [from - spanSeconds / 2, to + spanSeconds / 2] },
        y: { range: (_, __, to) => [0, to * 1.05 || 1] },
      },
      axes: [axis, { ...axis, size: 70 }],
      series: [
        { label: 'UTC', value: '{YYYY}-{MM}-{DD} {HH}:{mm}' },
        ...order.map(index => ({
          label: series[index].name,
          fill: colors[index % colors.length],
          stroke: colors[index % colors.length],
          width: 0,
          paths: uPlot.paths.bars({ size: [BAR_SHARE, 60] }),
          points: { show: false },
          value: shown,
        })),
      ],
    },
    [times, ...order.map(index => sums[index])],
    place,
  )
}

draw()
isDark.addEventListener('change', draw)
addEventListener('resize', draw)
