{{- define "gateway.name" -}}
{{- if contains "model-gateway" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-model-gateway" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "gateway.selector" -}}
app.kubernetes.io/name: model-gateway
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: gateway
{{- end }}

{{- define "gateway.labels" -}}
app.kubernetes.io/name: model-gateway
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "gateway.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* gateway.yaml: the values of `config` over those of the chart. */}}
{{- define "gateway.config" -}}
{{- $stores := dict }}
{{- if .Values.stores.postgres }}{{ $_ := set $stores "postgres" "${DATABASE_URL}" }}{{ else }}{{ $_ := set $stores "sqlite" "../data/gateway.db" }}{{ end }}
{{- if .Values.stores.redis }}{{ $_ := set $stores "redis" "${REDIS_URL}" }}{{ end }}
{{- $trusted := .Values.trustedProxies }}
{{- $chains := dict
  "inference" (list
    (dict "auth" (dict "trusted_proxies" $trusted)) (dict "admission" (dict "in_flight" 1000)) (dict "ratelimit" (dict "rpm" 600))
    "responses" (dict "cache" (dict "max_entry" "1MiB")) "healing" "route" (dict "reasoning" (dict "keep" "1h")) "translate" "billing" "telemetry")
  "local" (list
    (dict "auth" (dict "optional" true "trusted_proxies" $trusted)) (dict "ratelimit" (dict "rpm" 1200)) "telemetry") }}
{{- $endpoints := dict
  "chat" (dict "compat" (dict "reasoning_content" true)) "oauth" (dict "ratelimit" (dict "rpm" 60)) }}
{{- $catalog := dict "extends" "packaged" }}
{{- if .Values.providers.manifests }}{{ $_ := set $catalog "providers" "./providers.d" }}{{ end }}
{{- $own := dict "stores" $stores "catalog" $catalog "chains" $chains "endpoints" $endpoints }}
{{- toYaml (mergeOverwrite $own (deepCopy .Values.config)) }}
{{- end }}

{{- define "gateway.environment" -}}
- { name: HOST, value: "0.0.0.0" }
- { name: GATEWAY_ADMIN_LISTEN, value: "0.0.0.0:9901" }
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "gateway.sources" -}}
{{- if or .Values.stores.postgres .Values.stores.redis }}
- secretRef: { name: {{ .Values.stores.secret }} }
{{- end }}
{{- range .Values.providers.secrets }}
- secretRef: { name: {{ . }} }
{{- end }}
{{- end }}

{{- define "gateway.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ .Values.runAsUser }}
runAsGroup: {{ .Values.runAsUser }}
fsGroup: {{ .Values.runAsUser }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "gateway.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}
