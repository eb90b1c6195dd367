package infra

import (
	"maps"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"

	"github.com/lambdalock/lambdalock/infra/rules"
)

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
	retries               rules.Number
	eventAge              rules.Number
}

// asyncInvocation is how services invoke a function, alias or version.
type asyncInvocation struct {
	services []string
	config   *asyncConfig // empty by default
}

// notePermission notes a permission if its service invokes asynchronously.
func (v *survey) notePermission(r awslambda.CfnPermission) {
	principal := joined(r.Stack().Resolve(r.Principal())) // may be logs.eu-west-1.amazonaws.com
	if service := rules.AsyncService(principal); service != "" {
		v.asyncPermissions = append(v.asyncPermissions, asyncPermission{v.reference(r.Stack(), r.FunctionName()), service})
	}
}

// noteAsyncConfig notes a configuration. Its properties are read later.
func (v *survey) noteAsyncConfig(r awslambda.CfnEventInvokeConfig) {
	path := *r.Node().Path()
	v.asyncConfigs[path] = &asyncConfig{function: v.reference(r.Stack(), r.FunctionName()), qualifier: v.reference(r.Stack(), r.Qualifier())}
	v.readLater(r, path, func() {
		c := v.asyncConfigs[path]
		c.hasFailureDestination = hasFailureDestination(r.Stack(), r.DestinationConfig())
		c.retries = numberOr(r.MaximumRetryAttempts(), 2)
		c.eventAge = numberOr(r.MaximumEventAgeInSeconds(), 6*60*60)
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

// judgedAsync returns what the rules judge of the asynchronous invocations of a
// function.
func (v *survey) judgedAsync(function string) []rules.Async {
	var all []rules.Async
	invocations := v.asyncOf(function)
	for _, qualifier := range slices.Sorted(maps.Keys(invocations)) {
		i := invocations[qualifier]
		a := rules.Async{Services: i.services, HasFailureDestination: i.config.hasFailureDestination, Retries: i.config.retries, EventAge: i.config.eventAge}
		if qualifier != latest {
			a.Qualifier = qualifier
		}
		all = append(all, a)
	}
	return all
}
