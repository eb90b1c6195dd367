package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// countLines adds a metric filter for each of the counts, which matches its log
// message in lines of text and of JSON. They are bare resources, because every
// construct of a large app costs time. Functions that share a log group share
// the filters: with more, each line would count several times.
func (t *lockTable) countLines(scope constructs.Construct, group awslogs.ILogGroup) {
	name, namespace := group.LogGroupName(), t.logNamespace()
	id := *name
	if *awscdk.Token_IsUnresolved(name) { // In two stacks, equal tokens may mean different groups.
		id = "construct " + *group.Node().Path()
	}
	if t.logGroups[id] {
		return
	}
	t.logGroups[id] = true
	for _, c := range counts {
		awslogs.NewCfnMetricFilter(scope, jsii.String(c.name), &awslogs.CfnMetricFilterProps{
			LogGroupName:  name,
			FilterPattern: jsii.String(`"` + c.message() + `"`),
			MetricTransformations: []awslogs.CfnMetricFilter_MetricTransformationProperty{
				{MetricNamespace: namespace, MetricName: jsii.String(c.name), MetricValue: jsii.String("1")},
			},
		})
	}
}

// managedLogGroup returns the log group of fn, or nil if Lambda creates it at
// the first invocation. In that case Function.LogGroup must not be called: it
// would add a custom resource with its own function to the stack.
func managedLogGroup(fn awslambda.Function) awslogs.ILogGroup {
	if fn.Node().TryFindChild(jsii.String("LogGroup")) != nil { // by the feature flag, or by LogRetention
		return fn.LogGroup()
	}
	f, ok := fn.Node().DefaultChild().(awslambda.CfnFunction)
	if !ok {
		return nil
	}
	logging, _ := resolve(fn.Stack(), f.LoggingConfig()).(map[string]any)
	if logging["logGroup"] == nil {
		return nil
	}
	return fn.LogGroup()
}
