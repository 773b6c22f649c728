// Package alertmanager creates the configuration of the stack's Alertmanager. compose.yaml starts Alertmanager with the
// profile `alerts`.
package alertmanager

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// topic matches the ARN of an SNS topic and captures its region.
var topic = regexp.MustCompile(`^arn:aws[a-z-]*:sns:([a-z0-9-]+):[0-9]{12}:[A-Za-z0-9_-]+$`)

type object = map[string]any

// Templates of the subject and the text of a notification to Slack, Teams or SNS. Slack and Teams reject the JSON that
// Alertmanager sends to other webhooks.
const (
	subject = `soak: {{ .GroupLabels.alertname }} {{ .GroupLabels.testid }}`
	message = `{{ range .Alerts }}{{ .Status }} {{ .Labels.alertname }}: {{ .Annotations.summary }}. {{ .Annotations.do }}` + "\n{{ end }}"
)

// Config returns the content of alertmanager.yml for notifications to a webhook, an SNS topic, or both. Alertmanager
// sends a notification per run and alert when the alert fires, every hour after that, and when the alert is resolved.
func Config(webhook, topicARN string) ([]byte, error) {
	receiver := object{"name": "people"}
	if webhook != "" {
		u, err := url.Parse(webhook)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, errors.New("ALERT_WEBHOOK_URL must be the http or https address of a webhook") // the address may contain a secret
		}
		switch {
		case u.Hostname() == "hooks.slack.com":
			receiver["slack_configs"] = []object{{"api_url": webhook, "title": subject, "text": message, "send_resolved": true}}
		case strings.HasSuffix(u.Hostname(), ".webhook.office.com"), strings.HasSuffix(u.Hostname(), ".logic.azure.com"), strings.HasSuffix(u.Hostname(), ".api.powerplatform.com"):
			receiver["msteamsv2_configs"] = []object{{"webhook_url": webhook, "title": subject, "text": message, "send_resolved": true}}
		default:
			receiver["webhook_configs"] = []object{{"url": webhook}}
		}
	}
	if topicARN != "" {
		parts := topic.FindStringSubmatch(topicARN)
		if parts == nil {
			return nil, fmt.Errorf("ALERT_SNS_TOPIC must be the ARN of a topic such as arn:aws:sns:eu-central-1:123456789012:soak, got %q", topicARN)
		}
		receiver["sns_configs"] = []object{{
			"topic_arn": topicARN, "sigv4": object{"region": parts[1]},
			"subject": subject, "message": message,
		}}
	}
	if len(receiver) == 1 {
		return nil, errors.New("COMPOSE_PROFILES in .env contains the profile alerts, but no receiver is set; set ALERT_WEBHOOK_URL or ALERT_SNS_TOPIC, or remove the profile")
	}
	return json.MarshalIndent(object{ // JSON is also YAML
		"route": object{
			"receiver": "people", "group_by": []string{"alertname", "testid"},
			// If a runner is killed, a notification that arrives minutes later is too late to save the run.
			"group_wait": "2s", "group_interval": "30s", "repeat_interval": "1h",
		},
		"receivers": []object{receiver},
	}, "", "  ")
}
