package keyfuncs_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs/services"
	"github.com/lambdalock/lambdalock/lock"
)

func TestConfigRule(t *testing.T) {
	t.Parallel()
	rule := "config/arn:aws:config:us-east-2:123456789012:config-rule%2Fconfig-rule-"
	for file, name := range map[string]string{
		"config-change.json":    rule + "0123456/AWS::EC2::Instance/i-00000000",
		"config-oversized.json": rule + "ec2-managed-instance-inventory/AWS::EC2::Instance/i-00000000",
		"config-scheduled.json": rule + "0123456/ScheduledNotification",
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			k, err := changed(t, file, services.ConfigRule, nil)
			if k != (lock.Key{Name: name, Event: k.Event}) || len(k.Event) != 43 || err != nil {
				t.Errorf("%+v, %v; want the name %s and a digest", k, err, name)
			}
			gives(t, file, services.ConfigRule, k)
			apart(t, file, services.ConfigRule, map[string]func(*events.ConfigEvent){
				"evaluated anew": func(e *events.ConfigEvent) { e.ResultToken += "2" },
				"another rule":   func(e *events.ConfigEvent) { e.ConfigRuleArn += "2" },
				"another time":   func(e *events.ConfigEvent) { e.InvokingEvent = strings.ReplaceAll(e.InvokingEvent, "2016-", "2017-") },
			})
		})
	}
	refuses(t, "config-change.json", services.ConfigRule, map[string]func(*events.ConfigEvent){
		"configRuleArn":             func(e *events.ConfigEvent) { e.ConfigRuleArn = "" },
		"resultToken":               func(e *events.ConfigEvent) { e.ResultToken = "" },
		"invokingEvent":             func(e *events.ConfigEvent) { e.InvokingEvent = "{" },
		"invokingEvent.messageType": func(e *events.ConfigEvent) { e.InvokingEvent = "{}" },
		"invokingEvent.configurationItem.resourceId": func(e *events.ConfigEvent) {
			e.InvokingEvent = strings.Replace(e.InvokingEvent, `"i-00000000"`, `""`, 1)
		},
	})
}
