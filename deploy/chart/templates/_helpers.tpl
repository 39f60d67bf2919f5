{{- define "quarterdeck.image" -}}
{{- $remedy := "name the release image: --set image=REGISTRY/NAME@sha256:..." -}}
{{ required $remedy .Values.image | quote }}
{{- end -}}
