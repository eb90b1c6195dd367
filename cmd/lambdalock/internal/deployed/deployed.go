// Package deployed reads a function as it is deployed: its settings, and those
// of what invokes it.
package deployed

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/infra/rules"
	"github.com/lambdalock/lambdalock/internal/awserror"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// namespaceVariable is that of package middleware.
const namespaceVariable = "LOCK_NAMESPACE"

// Function is a deployed function, or one of its aliases.
type Function struct {
	Name      string // with the alias, if it is one
	Table     string // LOCK_TABLE_NAME; empty if it is not set
	Namespace string // LOCK_NAMESPACE; empty if it is not set
	Settings  rules.Function
	Mappings  []rules.Mapping
	Disabled  []string // the mappings that deliver nothing
	Stopped   bool     // its reserved concurrency is 0, which its aliases share
	Unread    []error  // what could not be read
	Unseen    []string // what is not looked at

	deadLetterQueue string // its ARN, which may be that of a topic

	address   string // as Lambda takes it
	arn       string // with the alias
	base      string // Name without the alias
	qualified bool   // address has an alias or a version
}

// DefaultNamespace returns the namespace that middleware takes if the code sets
// none.
func (f *Function) DefaultNamespace() string {
	if f.Namespace != "" {
		return f.Namespace
	}
	return f.base
}

// ARN returns the function's ARN, with its alias or version if one was named.
func (f *Function) ARN() string { return f.arn }

// DeadLetterQueue returns the ARN of its dead-letter queue, or "".
func (f *Function) DeadLetterQueue() string { return f.deadLetterQueue }

// ConfigurationClient is the part of a *lambda.Client that Configuration needs.
type ConfigurationClient interface {
	GetFunctionConfiguration(context.Context, *lambda.GetFunctionConfigurationInput, ...func(*lambda.Options)) (*lambda.GetFunctionConfigurationOutput, error)
}

// Region returns the Region in the ARN of a function, or "" for a name.
func Region(name string) string {
	if part := strings.Split(name, ":"); len(part) > 3 && part[0] == "arn" {
		return part[3]
	}
	return ""
}

// Configuration reads the function's own settings. The name may be an ARN, and
// may end with a colon and an alias or a version. The error is a
// *driver.ConfigError if there is no such function, and otherwise a
// *driver.Error.
func Configuration(ctx context.Context, client ConfigurationClient, name string) (*Function, error) {
	out, err := client.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &name})
	if err != nil {
		return nil, failed("Lambda function "+name, "lambda:GetFunctionConfiguration", err)
	}
	f := &Function{Name: aws.ToString(out.FunctionName), base: aws.ToString(out.FunctionName), address: name, arn: latest(out.FunctionArn)}
	if part := strings.Split(aws.ToString(out.FunctionArn), ":"); len(part) > 7 {
		f.Name, f.qualified = f.base+":"+part[7], true
	}
	if out.Environment != nil {
		f.Table, f.Namespace = out.Environment.Variables[dynamostore.TableVariable], out.Environment.Variables[namespaceVariable]
	}
	if out.Timeout != nil {
		f.Settings.Timeout = rules.Known(float64(*out.Timeout))
	}
	if out.DeadLetterConfig != nil {
		f.deadLetterQueue = aws.ToString(out.DeadLetterConfig.TargetArn)
		f.Settings.HasDeadLetterQueue = f.deadLetterQueue != ""
	}
	if out.LoggingConfig != nil {
		f.Settings.LogLevel = string(out.LoggingConfig.ApplicationLogLevel)
	}
	return f, nil
}

// unqualified returns the function without an alias, as Lambda takes it.
func (f *Function) unqualified() string {
	if part := strings.Split(f.arn, ":"); len(part) >= 7 {
		return strings.Join(part[:7], ":")
	}
	return f.address
}

// unseen notes what is not looked at.
func (f *Function) unseen(format string, args ...any) {
	f.Unseen = append(f.Unseen, fmt.Sprintf(format, args...))
}

// latest returns an ARN without $LATEST, which means the same.
func latest(arn *string) string { return strings.TrimSuffix(aws.ToString(arn), ":$LATEST") }

// failed returns the error of a request for what.
func failed(what, action string, err error) error {
	if missing(err) {
		return &driver.ConfigError{Reason: what + " does not exist in this account and Region: correct its name, AWS_PROFILE or AWS_REGION", Err: err}
	}
	e := &driver.Error{Store: what, Err: err}
	if api := smithy.APIError(nil); errors.As(err, &api) && strings.Contains(api.ErrorCode(), "AccessDenied") {
		e.Action, e.Hint, e.Lasting = awserror.Denied(api.ErrorMessage(), action), awserror.Remedy(api.ErrorMessage(), "allow yourself that action"), true
	}
	return e
}

// missing reports whether what was asked for does not exist.
func missing(err error) bool {
	return errors.As(err, new(*lambdatypes.ResourceNotFoundException))
}
