package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"
)

// What the metrics of a table mean:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/metrics-dimensions.html

func period() awscdk.Duration { return awscdk.Duration_Minutes(jsii.Number(5)) }

// updateMetric returns a metric of UpdateItem alone. The metrics of Table that
// add up operations, such as MetricThrottledRequestsForOperations, cannot share
// a graph.
func (t *lockTable) updateMetric(name, statistic string) awscloudwatch.IMetric {
	return t.table.Metric(jsii.String(name), &awscloudwatch.MetricOptions{
		DimensionsMap: &map[string]*string{"TableName": t.table.TableName(), "Operation": jsii.String("UpdateItem")},
		Statistic:     jsii.String(statistic),
		Period:        period(),
	})
}

func (t *lockTable) throttledRequests() awscloudwatch.IMetric {
	return t.updateMetric("ThrottledRequests", "Sum")
}

func (t *lockTable) systemErrors() awscloudwatch.IMetric {
	return t.updateMetric("SystemErrors", "Sum")
}

func (t *lockTable) latency(statistic string) awscloudwatch.IMetric {
	return t.updateMetric("SuccessfulRequestLatency", statistic)
}

func (t *lockTable) refusedClaims() awscloudwatch.IMetric {
	return t.table.MetricConditionalCheckFailedRequests(&awscloudwatch.MetricOptions{
		Statistic: jsii.String("Sum"), Period: period(),
	})
}

func (t *lockTable) writeUnits() awscloudwatch.IMetric {
	return t.table.MetricConsumedWriteCapacityUnits(&awscloudwatch.MetricOptions{
		Statistic: jsii.String("Sum"), Period: period(),
	})
}
