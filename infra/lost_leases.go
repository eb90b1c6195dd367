package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// leaseLost is the namespace of the metrics of lost leases. The metric of a
// table has the table's name, because a metric filter takes dimensions only
// from fields of the log line:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntaxForMetricFilters.html
const leaseLost = "lambdalock/LeaseLost"

// countLostLeases adds a metric filter that matches the log message of a lost
// lease, in lines of text and of JSON.
func (t *lockTable) countLostLeases(scope constructs.Construct, group awslogs.ILogGroup) {
	awslogs.NewMetricFilter(scope, jsii.String("LeaseLost"), &awslogs.MetricFilterProps{
		LogGroup:        group,
		FilterPattern:   awslogs.FilterPattern_Literal(jsii.String(`"lambdalock: lost"`)),
		MetricNamespace: jsii.String(leaseLost),
		MetricName:      t.table.TableName(),
		MetricValue:     jsii.String("1"),
	})
}

// lostLeases returns the metric that countLostLeases makes.
func (t *lockTable) lostLeases() awscloudwatch.IMetric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String(leaseLost), MetricName: t.table.TableName(),
		Statistic: jsii.String("Sum"), Period: period(),
	})
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
