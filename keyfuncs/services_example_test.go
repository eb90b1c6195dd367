package keyfuncs_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/keyfuncs"
)

// The task has "Payload": {"order.$": "$.order", "context.$": "$$"} among its Parameters.
func ExampleStepFunctions() {
	type input struct {
		Order   int                           `json:"order"`
		Context keyfuncs.StepFunctionsContext `json:"context"`
	}
	perTask := keyfuncs.StepFunctions(func(in input) keyfuncs.StepFunctionsContext { return in.Context })

	var in input
	err := json.Unmarshal([]byte(`{
		"order": 1017,
		"context": {
			"Execution": {"Id": "arn:aws:states:eu-central-1:123456789012:execution:orders:1017"},
			"State": {"Name": "Charge", "EnteredTime": "2026-11-21T08:15:30.123Z", "RetryCount": 1}
		}
	}`), &in)
	if err != nil {
		fmt.Println(err)
	}
	show(perTask(context.Background(), in))
	// Output: name "stepfunctions/arn:aws:states:eu-central-1:123456789012:execution:orders:1017/Charge/", event "2026-11-21T08:15:30.123Z", order "", error <nil>
}

func ExampleCognitoUser() {
	var e events.CognitoEventUserPoolsPostConfirmation
	e.UserPoolID, e.UserName = "eu-central-1_Ab1Cd2Ef3", "jane"
	show(keyfuncs.CognitoUser(context.Background(), e))
	// Output: name "cognito/eu-central-1_Ab1Cd2Ef3/jane", event "", order "", error <nil>
}

// The SQL of the rule is SELECT *, topic() AS topic, traceid() AS traceId FROM 'sensors/#'.
func ExampleIoTRule() {
	type reading struct {
		keyfuncs.IoTMessage
		Celsius float64 `json:"celsius"`
	}
	perMessage := keyfuncs.IoTRule(func(r reading) keyfuncs.IoTMessage { return r.IoTMessage })

	var r reading
	if err := json.Unmarshal([]byte(`{"celsius": 21.5, "topic": "sensors/kitchen", "traceId": "0d9c8b7a"}`), &r); err != nil {
		fmt.Println(err)
	}
	show(perMessage(context.Background(), r))
	// Output: name "iot/sensors%2Fkitchen/0d9c8b7a", event "0d9c8b7a", order "", error <nil>
}
