package keyfuncs_test

import (
	"testing"

	"github.com/aws/aws-lambda-go/cfn"

	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/services"
	"github.com/lambdalock/lambdalock/lock"
)

func TestCloudFormation(t *testing.T) {
	t.Parallel()
	gives(t, "cloudformation.json", services.CloudFormation, lock.Key{
		Name:  "cloudformation/arn:aws:cloudformation:us-east-2:123456789012:stack%2Flambda-error-processor%2F1134083a-2608-1e91-9897-022501a2c456/primerinvoke",
		Event: "5d478078-13e9-baf0-464a-7ef285ecc786",
	})
	apart(t, "cloudformation.json", services.CloudFormation, map[string]func(*cfn.Event){
		"another request":  func(e *cfn.Event) { e.RequestID += "2" },
		"another resource": func(e *cfn.Event) { e.LogicalResourceID += "2" },
		"another stack":    func(e *cfn.Event) { e.StackID += "2" },
	})
	refuses(t, "cloudformation.json", services.CloudFormation, map[string]func(*cfn.Event){
		"StackId":           func(e *cfn.Event) { e.StackID = "" },
		"LogicalResourceId": func(e *cfn.Event) { e.LogicalResourceID = "" },
		"RequestId":         func(e *cfn.Event) { e.RequestID = "" },
	})
	want, _ := changed(t, "cloudformation.json", services.CloudFormation, nil)
	if k, err := inTopic(keyfuncs.SNSBody(services.CloudFormation))(t.Context(), text(t, "cloudformation.json")); k != want || err != nil {
		t.Errorf("through a topic: %+v, %v", k, err)
	}
}
