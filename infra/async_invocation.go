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
	neverRetries          bool
}

// asyncInvocation is how services invoke a function, alias or version.
type asyncInvocation struct {
	services []string
	config   *asyncConfig // empty by default
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

// noteAsyncConfig notes a configuration. Its properties are read later.
func (v *survey) noteAsyncConfig(r awslambda.CfnEventInvokeConfig) {
	path := *r.Node().Path()
	v.asyncConfigs[path] = &asyncConfig{function: v.reference(r.Stack(), r.FunctionName()), qualifier: v.reference(r.Stack(), r.Qualifier())}
	v.readLater(r, path, func() {
		destinations, _ := resolve(r.Stack(), r.DestinationConfig()).(map[string]any)
		v.asyncConfigs[path].hasFailureDestination = destinations["onFailure"] != nil
		v.asyncConfigs[path].neverRetries = isZero(r.MaximumRetryAttempts())
	})
}

// asyncOf returns the services that invoke a function asynchronously, by the
// alias or version that they invoke.
func (v *survey) asyncOf(function string) map[string]*asyncInvocation {
	if v.async == nil { // once, after everything has been read
		v.async = v.allAsync()
	}
	return v.async[function]
}

func (v *survey) allAsync() map[string]map[string]*asyncInvocation {
	all := map[string]map[string]*asyncInvocation{}
	for _, p := range v.asyncPermissions {
		function, qualifier := v.functionOf(p.function)
		if all[function] == nil {
			all[function] = map[string]*asyncInvocation{}
		}
		i := all[function][qualifier]
		if i == nil {
			i = &asyncInvocation{config: &asyncConfig{}}
			all[function][qualifier] = i
		}
		if !slices.Contains(i.services, p.service) {
			i.services = append(i.services, p.service)
		}
	}
	// A configuration applies to one alias or version only:
	// https://docs.aws.amazon.com/lambda/latest/api/API_PutFunctionEventInvokeConfig.html
	for _, config := range v.asyncConfigs {
		function, qualifier := v.configured(config)
		if i := all[function][qualifier]; i != nil {
			i.config = config
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

// Lambda's last attempt at an asynchronous invocation comes so many seconds
// after the first failure, and the lock of a process that died is held until
// its deadline and lock.DefaultGrace:
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
const (
	lastAttempt = 60 + 120
	lockGrace   = 2
)

// checkAsync warns if nothing keeps an event that failed, or if one held lock
// is enough for that. A held lock fails the invocation, and Lambda gives up
// after the third attempt.
func (c *connection) checkAsync() {
	f := c.table.survey.functions[c.resourcePath]
	if f == nil {
		return
	}
	invocations := c.table.survey.asyncOf(c.resourcePath)
	for _, qualifier := range slices.Sorted(maps.Keys(invocations)) {
		i := invocations[qualifier]
		how := "it is invoked asynchronously (" + strings.Join(i.services, ", ") + ")"
		if qualifier != latest {
			how += " through " + qualifier
		}
		if !f.hasDeadLetterQueue && !i.config.hasFailureDestination {
			c.warn(WarnFailureDestination, "%s and has neither a dead-letter queue nor a failure destination there, "+
				"so an event that fails three times, for example because its lock stays held, is lost: set OnFailure or DeadLetterQueue", how)
		}
		if i.config.neverRetries {
			c.warn(WarnRetryAttempts, "%s with RetryAttempts 0: an event that finds its lock held once has failed for good. Set RetryAttempts to 2", how)
		}
	}
	if len(invocations) > 0 && f.timeout.known && f.timeout.value+lockGrace > lastAttempt {
		c.warn(WarnAsyncTimeout, "it is invoked asynchronously and has a timeout of %g s: if its process dies, its lock is held until that time, but Lambda's last attempt comes after %d s, "+
			"so all attempts may find the lock held, and the event fails. Set the timeout to at most %d s, or use middleware.Heartbeat and acknowledge this warning",
			f.timeout.value, lastAttempt, lastAttempt-lockGrace)
	}
}
