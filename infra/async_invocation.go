package infra

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
)

// asyncServices are the services that invoke a function asynchronously, by the
// beginning of their principals:
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-services.html
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-actions-Lambda.html
var asyncServices = []string{
	"s3", "sns", "events", "scheduler", "iot", "logs", "lambda.alarms.cloudwatch", "ses", "codecommit", "config", "cloudformation",
}

// asyncPermission allows a service to invoke a function asynchronously.
type asyncPermission struct {
	function reference
	service  string
}

// asyncConfig configures the asynchronous invocations of a function, alias or
// version.
type asyncConfig struct {
	function              reference
	qualifier             reference
	hasFailureDestination bool
}

// notePermission notes a permission if it is for one of the asyncServices.
func (v *survey) notePermission(r awslambda.CfnPermission) {
	principal := joined(r.Stack().Resolve(r.Principal())) // may be logs.eu-west-1.amazonaws.com
	for _, service := range asyncServices {
		if strings.HasPrefix(principal, service+".") {
			v.asyncPermissions = append(v.asyncPermissions, asyncPermission{v.reference(r.Stack(), r.FunctionName()), service})
		}
	}
}

// noteAsyncConfig notes a configuration. Its destinations are read later.
func (v *survey) noteAsyncConfig(r awslambda.CfnEventInvokeConfig) {
	path := *r.Node().Path()
	v.asyncConfigs[path] = &asyncConfig{function: v.reference(r.Stack(), r.FunctionName()), qualifier: v.reference(r.Stack(), r.Qualifier())}
	v.readLater(r, path, func() {
		destinations, _ := resolve(r.Stack(), r.DestinationConfig()).(map[string]any)
		v.asyncConfigs[path].hasFailureDestination = destinations["onFailure"] != nil
	})
}

// invokersOf returns the services that invoke a function asynchronously without
// a failure destination, by the alias or version that they invoke.
func (v *survey) invokersOf(function string) map[string][]string {
	if v.invokers == nil { // once, after everything has been read
		v.invokers = v.allInvokers()
	}
	return v.invokers[function]
}

func (v *survey) allInvokers() map[string]map[string][]string {
	all := map[string]map[string][]string{}
	for _, p := range v.asyncPermissions {
		function, qualifier := v.functionOf(p.function)
		if all[function] == nil {
			all[function] = map[string][]string{}
		}
		if services := all[function][qualifier]; !slices.Contains(services, p.service) {
			all[function][qualifier] = append(services, p.service)
		}
	}
	// A configuration applies to one alias or version only:
	// https://docs.aws.amazon.com/lambda/latest/api/API_PutFunctionEventInvokeConfig.html
	for _, config := range v.asyncConfigs {
		if config.hasFailureDestination {
			function, qualifier := v.configured(config)
			delete(all[function], qualifier)
		}
	}
	return all
}

// configured returns the function that config applies to, and its alias or
// version.
func (v *survey) configured(config *asyncConfig) (function, qualifier string) {
	function, _ = v.functionOf(config.function)
	if config.qualifier.text == latest {
		return function, latest
	}
	for _, target := range v.targets(config.qualifier) {
		if _, ok := v.qualifiers[target]; ok {
			return function, target
		}
	}
	if alias, ok := v.aliasOf(function, config.qualifier.text); ok {
		return function, alias
	}
	return function, config.qualifier.text
}

// checkFailureDestination warns if nothing keeps an event that failed. A held
// lock fails the invocation, and Lambda gives up after the third attempt:
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
func (c *connection) checkFailureDestination() {
	v := c.table.survey
	if f := v.functions[c.resourcePath]; f == nil || f.hasDeadLetterQueue {
		return
	}
	invokers := v.invokersOf(c.resourcePath)
	for _, qualifier := range slices.Sorted(maps.Keys(invokers)) {
		through := ""
		if qualifier != latest {
			through = " through " + qualifier
		}
		c.warn(WarnFailureDestination, "it is invoked asynchronously (%s)%s and has neither a dead-letter queue nor a failure destination there, "+
			"so an event that fails three times, for example because its lock stays held, is lost: set OnFailure or DeadLetterQueue",
			strings.Join(invokers[qualifier], ", "), through)
	}
}
