package awsevents

import "encoding/json"

// StepFunctionsContext is the part of a state machine's context object that
// identifies a task.
//
// Source: https://docs.aws.amazon.com/step-functions/latest/dg/input-output-contextobject.html.
type StepFunctionsContext struct {
	Execution struct {
		ID string `json:"Id"` // an ARN
	} `json:"Execution"`
	State struct {
		Name        string `json:"Name"`
		EnteredTime string `json:"EnteredTime"` // ISO 8601, to the millisecond
	} `json:"State"`
	Map struct {
		Item struct {
			Index json.Number `json:"Index"` // empty outside a Map state
		} `json:"Item"`
	} `json:"Map"`
}
