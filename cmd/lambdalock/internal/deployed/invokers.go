package deployed

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdalock/lambdalock/infra/rules"
)

// LambdaClient is the part of a *lambda.Client that a [Reader] needs.
type LambdaClient interface {
	ConfigurationClient
	lambda.ListAliasesAPIClient
	lambda.ListEventSourceMappingsAPIClient
	GetFunctionConcurrency(context.Context, *lambda.GetFunctionConcurrencyInput, ...func(*lambda.Options)) (*lambda.GetFunctionConcurrencyOutput, error)
	GetPolicy(context.Context, *lambda.GetPolicyInput, ...func(*lambda.Options)) (*lambda.GetPolicyOutput, error)
	GetResourcePolicy(context.Context, *lambda.GetResourcePolicyInput, ...func(*lambda.Options)) (*lambda.GetResourcePolicyOutput, error)
	GetFunctionEventInvokeConfig(context.Context, *lambda.GetFunctionEventInvokeConfigInput, ...func(*lambda.Options)) (*lambda.GetFunctionEventInvokeConfigOutput, error)
}

// SQSClient is the part of a *sqs.Client that a [Reader] needs.
type SQSClient interface {
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// KinesisClient is the part of a *kinesis.Client that a [Reader] needs.
type KinesisClient interface {
	DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput, ...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error)
}

// Reader reads functions and what invokes them.
type Reader struct {
	Lambda  LambdaClient
	SQS     SQSClient
	Kinesis KinesisClient
}

// Read reads a function and what invokes it. If the name has no alias, it also
// reads the function's aliases, each of which has its own invokers. The error
// is that of [Configuration]; what else could not be read is in Unread.
func (r *Reader) Read(ctx context.Context, name string) ([]*Function, error) {
	f, err := Configuration(ctx, r.Lambda, name)
	if err != nil {
		return nil, err
	}
	r.readConcurrency(ctx, f)
	all := []*Function{f}
	if f.qualified {
		r.readRouting(ctx, f)
	} else {
		all = append(all, r.aliases(ctx, f)...)
	}
	for _, f := range all {
		f.Settings.GoneDeadLetterQueue = r.gone(ctx, f, f.deadLetterQueue)
		r.readAsync(ctx, f)
		r.readMappings(ctx, f)
	}
	return all, nil
}

// unread notes what could not be read.
func (f *Function) unread(what, action string, err error) {
	f.Unread = append(f.Unread, failed(what, action, err))
}

// aliases reads the aliases of f.
func (r *Reader) aliases(ctx context.Context, f *Function) []*Function {
	var all []*Function
	for _, a := range r.listAliases(ctx, f) {
		alias, err := Configuration(ctx, r.Lambda, aws.ToString(a.AliasArn))
		if err != nil {
			f.Unread = append(f.Unread, err)
			continue
		}
		r.readVersions(ctx, alias, &a)
		all = append(all, alias)
	}
	return all
}

func (r *Reader) listAliases(ctx context.Context, f *Function) (all []lambdatypes.AliasConfiguration) {
	name := f.address
	if f.qualified {
		name = f.unqualified()
	}
	pages := lambda.NewListAliasesPaginator(r.Lambda, &lambda.ListAliasesInput{FunctionName: &name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			f.unread("the aliases of "+f.Name, "lambda:ListAliases", err)
			return all
		}
		all = append(all, page.Aliases...)
	}
	return all
}

// readRouting reads among which versions f divides invocations, if it is an
// alias that was named.
func (r *Reader) readRouting(ctx context.Context, f *Function) {
	for _, a := range r.listAliases(ctx, f) {
		if aws.ToString(a.AliasArn) == f.arn {
			r.readVersions(ctx, f, &a)
		}
	}
}

// readVersions reads where the versions lock among which an alias divides
// invocations.
func (r *Reader) readVersions(ctx context.Context, f *Function, a *lambdatypes.AliasConfiguration) {
	if a.RoutingConfig == nil || len(a.RoutingConfig.AdditionalVersionWeights) == 0 {
		return
	}
	weights := map[string]float64{aws.ToString(a.FunctionVersion): 1}
	for v, weight := range a.RoutingConfig.AdditionalVersionWeights {
		weights[v] = weight
		weights[aws.ToString(a.FunctionVersion)] -= weight
	}
	for _, v := range slices.Sorted(maps.Keys(weights)) {
		if weights[v] <= 0 {
			continue
		}
		of, err := Configuration(ctx, r.Lambda, f.unqualified()+":"+v)
		if err != nil {
			f.Unread = append(f.Unread, err)
			continue
		}
		f.Settings.Versions = append(f.Settings.Versions, rules.Version{Name: v, Table: of.Table, Namespace: of.DefaultNamespace()})
	}
}

// readConcurrency reads whether f is stopped. Lambda takes no alias for that.
func (r *Reader) readConcurrency(ctx context.Context, f *Function) {
	name := f.unqualified()
	out, err := r.Lambda.GetFunctionConcurrency(ctx, &lambda.GetFunctionConcurrencyInput{FunctionName: &name})
	if err != nil {
		f.unread("the concurrency of "+f.Name, "lambda:GetFunctionConcurrency", err)
		return
	}
	f.Stopped = out.ReservedConcurrentExecutions != nil && *out.ReservedConcurrentExecutions == 0
}
