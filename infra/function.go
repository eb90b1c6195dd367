package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"

	"github.com/lambdalock/lambdalock/infra/rules"
)

// function holds the properties that are read from a function.
type function struct {
	settings  rules.Function // without Async
	variables variables      // if the function is connected
}

// noteFunction notes a function. Its properties are read later.
func (v *survey) noteFunction(r awslambda.CfnFunction) {
	path := v.note(r)
	v.functions[path] = &function{}
	v.readLater(r, path, func() {
		f := v.functions[path]
		// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-lambda-function.html
		f.settings = rules.Function{Timeout: numberOr(r.Timeout(), 3), HasDeadLetterQueue: r.DeadLetterConfig() != nil}
		logging, _ := resolve(r.Stack(), r.LoggingConfig()).(map[string]any)
		f.settings.LogLevel, _ = logging["applicationLogLevel"].(string)
		if c := v.connections[path]; c != nil {
			f.variables = c.readVariables()
		}
	})
	if c := v.connections[path]; c != nil {
		v.checkLast(c)
	}
}

// functionOf returns the path of the function that ref means, and the path of
// the alias or version in ref, or [latest]. Both are empty if the function is
// not in the stage.
func (v *survey) functionOf(ref reference) (function, qualifier string) {
	targets := v.targets(ref)
	for _, target := range targets {
		if q, ok := v.qualifiers[target]; ok {
			function, _ := v.functionOf(q.function)
			return function, target
		}
	}
	for _, target := range targets {
		if v.functions[target] != nil {
			return target, latest
		}
	}
	return "", ""
}
