package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"
)

// What the metrics of a table mean:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/metrics-dimensions.html

func period() awscdk.Duration { return awscdk.Duration_Minutes(jsii.Number(5)) }

// The operations that write to the table. The second is that of
// dynamostore.Transact.
const (
	updates      = "UpdateItem"
	transactions = "TransactWriteItems"
)

// metric returns a metric of one operation.
func (t *lockTable) metric(name, operation, statistic string) awscloudwatch.IMetric {
	return t.table.Metric(jsii.String(name), &awscloudwatch.MetricOptions{
		DimensionsMap: &map[string]*string{"TableName": t.table.TableName(), "Operation": jsii.String(operation)},
		Statistic:     jsii.String(statistic),
		Period:        period(),
	})
}

// ofBoth returns a metric of both operations. An operation that has no data,
// such as a transaction in most functions, counts as zero. The metrics of a
// graph need different ids.
func (t *lockTable) ofBoth(name, id string) awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String("FILL(" + id + "Updates, 0) + FILL(" + id + "Transactions, 0)"),
		UsingMetrics: &map[string]awscloudwatch.IMetric{
			id + "Updates":      t.metric(name, updates, "Sum"),
			id + "Transactions": t.metric(name, transactions, "Sum"),
		},
		Label:  jsii.String(name),
		Period: period(),
	})
}

func (t *lockTable) throttledRequests() awscloudwatch.IMetric {
	return t.ofBoth("ThrottledRequests", "throttled")
}

func (t *lockTable) systemErrors() awscloudwatch.IMetric {
	return t.ofBoth("SystemErrors", "failed")
}

func (t *lockTable) latency(statistic string) awscloudwatch.IMetric {
	return t.metric("SuccessfulRequestLatency", updates, statistic)
}

// refusedShare returns the percentage of claims that are refused. Of the
// requests that succeed, half are claims: each is followed by the completion or
// the release of its lock. Renewals make the share look smaller.
func (t *lockTable) refusedShare() awscloudwatch.IMetric {
	return share("FILL(refused, 0)", "(FILL(updates, 0) + FILL(transactions, 0)) / 2", map[string]awscloudwatch.IMetric{
		"refused":      t.refusedClaims(),
		"updates":      t.metric("SuccessfulRequestLatency", updates, "SampleCount"),
		"transactions": t.metric("SuccessfulRequestLatency", transactions, "SampleCount"),
	})
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
