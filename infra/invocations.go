package infra

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
)

// asynchronous are the services that invoke a function and do not wait for it, as
// their principals begin:
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-services.html
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-actions-Lambda.html
var asynchronous = []string{
	"s3", "sns", "events", "scheduler", "iot", "logs", "lambda.alarms.cloudwatch", "ses", "codecommit", "config", "cloudformation",
}

// permission is that of a service to invoke a function asynchronously.
type permission struct {
	function reference
	service  string
}

// invoke says what becomes of asynchronous invocations.
type invoke struct {
	function  reference
	qualifier reference
	keeps     bool // what failed
}

func (v *survey) notePermission(r awslambda.CfnPermission) {
	principal := joined(r.Stack().Resolve(r.Principal())) // logs.eu-west-1.amazonaws.com, too
	for _, service := range asynchronous {
		if strings.HasPrefix(principal, service+".") {
			v.permissions = append(v.permissions, permission{v.reference(r.Stack(), r.FunctionName()), service})
		}
	}
}

func (v *survey) noteInvoke(r awslambda.CfnEventInvokeConfig) {
	path := *r.Node().Path()
	v.invokes[path] = &invoke{function: v.reference(r.Stack(), r.FunctionName()), qualifier: v.reference(r.Stack(), r.Qualifier())}
	v.readLater(r, path, func() {
		destinations, _ := resolve(r.Stack(), r.DestinationConfig()).(map[string]any)
		v.invokes[path].keeps = destinations["onFailure"] != nil
	})
}

// invokersOf are the services that invoke a function asynchronously, by the alias or
// version that they invoke, where nothing keeps what failed.
func (v *survey) invokersOf(fn string) map[string][]string {
	if v.invokers == nil { // once, when all is read
		v.invokers = map[string]map[string][]string{}
		for _, p := range v.permissions {
			path, by := v.function(p.function)
			if v.invokers[path] == nil {
				v.invokers[path] = map[string][]string{}
			}
			if services := v.invokers[path][by]; !slices.Contains(services, p.service) {
				v.invokers[path][by] = append(services, p.service)
			}
		}
		// A configuration is for one alias or version only:
		// https://docs.aws.amazon.com/lambda/latest/api/API_PutFunctionEventInvokeConfig.html
		for _, i := range v.invokes {
			if path, by := v.qualified(i); i.keeps {
				delete(v.invokers[path], by)
			}
		}
	}
	return v.invokers[fn]
}

// qualified is the function that i configures, and its alias or version.
func (v *survey) qualified(i *invoke) (path, by string) {
	path, _ = v.function(i.function)
	if i.qualifier.text == latest {
		return path, latest
	}
	for _, target := range v.targets(i.qualifier) {
		if _, ok := v.qualifiers[target]; ok {
			return path, target
		}
	}
	for target, q := range v.qualifiers { // by its name
		if q.name != "" && q.name == i.qualifier.text {
			if of, _ := v.function(q.function); of == path {
				return path, target
			}
		}
	}
	return path, i.qualifier.text
}

// checkFailureDestination: a held lock fails the invocation, and Lambda gives up
// after the third attempt:
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
func (c *connection) checkFailureDestination() {
	v := c.table.survey
	if f := v.functions[c.resource]; f == nil || f.deadLetters {
		return
	}
	invokers := v.invokersOf(c.resource)
	for _, by := range slices.Sorted(maps.Keys(invokers)) {
		through := ""
		if by != latest {
			through = " through " + by
		}
		c.warn(WarnFailureDestination, "it is invoked asynchronously (%s)%s and has neither dead-letter queue nor failure destination there, "+
			"so that an event which fails three times, as behind a lock that is held for long, is lost: set OnFailure or DeadLetterQueue",
			strings.Join(invokers[by], ", "), through)
	}
}
