/** Garbage collection for a process with a small heap, large bodies, and requests that wait for providers. */
import { setFlagsFromString } from 'node:v8'

/**
 * Sets flags of V8. Call once per process, before its start.
 *
 * V8 counts external buffers against a limit that follows the size of the heap. The gateway's heap is small and its
 * bodies are large: with a few concurrent answers of 3 MB, V8 marked the whole heap for every fifth of them, which
 * doubled the CPU time. With a limit of three times the live heap it hardly ever does, and 5,000 open streams take no
 * more memory.
 *
 * V8 allocates objects of a literal in the old generation when most of them survive a scavenge. Those of a request
 * that waits for its provider do. Each such object keeps its whole request alive until the next full collection. Then
 * 9 kB of each request were copied into the old generation, and scavenges took three times as long.
 */
export function tuneHeap(): void {
  setFlagsFromString('--heap-growing-percent=200')
  setFlagsFromString('--no-allocation-site-pretenuring')
}
