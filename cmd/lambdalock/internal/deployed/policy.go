package deployed

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/lambdalock/lambdalock/infra/rules"
	"github.com/lambdalock/lambdalock/internal/awserror"
)

// readAsync reads how services invoke f asynchronously. Those that are allowed
// to by a role, such as EventBridge Scheduler, are not seen.
func (r *Reader) readAsync(ctx context.Context, f *Function) {
	policy, ok := r.readPolicy(ctx, f)
	if !ok {
		return
	}
	services, err := asyncServices(policy)
	if err != nil {
		f.Unread = append(f.Unread, fmt.Errorf("the policy of %s is none that is known here, so who invokes it is not: %w", f.Name, err))
	}
	if len(services) == 0 {
		return
	}
	async := rules.Async{Services: services}
	out, err := r.Lambda.GetFunctionEventInvokeConfig(ctx, &lambda.GetFunctionEventInvokeConfigInput{FunctionName: &f.address})
	switch {
	case missing(err): // the defaults
	case err != nil:
		f.unread("the asynchronous invocation of "+f.Name, "lambda:GetFunctionEventInvokeConfig", err)
		return
	default:
		to := onFailure(out.DestinationConfig)
		async.HasFailureDestination, async.GoneDestination = to != "", r.gone(ctx, f, to)
		async.Retries, async.EventAge = number(out.MaximumRetryAttempts), number(out.MaximumEventAgeInSeconds)
	}
	f.Settings.Async = []rules.Async{async}
}

// readPolicy returns the policy of f. It reports false if there is none, or if
// it cannot be read. AWS does not say whether GetPolicy returns a policy that
// PutResourcePolicy has put.
// https://docs.aws.amazon.com/lambda/latest/dg/access-control-resource-based.html
func (r *Reader) readPolicy(ctx context.Context, f *Function) (string, bool) {
	policy, err := r.Lambda.GetPolicy(ctx, &lambda.GetPolicyInput{FunctionName: &f.address})
	if err == nil {
		return aws.ToString(policy.Policy), true
	}
	if !missing(err) {
		f.unread("the policy of "+f.Name, "lambda:GetPolicy", err)
		return "", false
	}
	whole, err := r.Lambda.GetResourcePolicy(ctx, &lambda.GetResourcePolicyInput{ResourceArn: &f.arn})
	switch {
	case missing(err), awserror.Status(err) == http.StatusNotFound: // there is no policy, or no such operation
		return "", false
	case err != nil:
		f.unread("the resource policy of "+f.Name, "lambda:GetResourcePolicy", err)
		return "", false
	}
	return aws.ToString(whole.Policy), true
}

// some is what a policy gives as one value, or as a list.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_grammar.html
type some[T any] []T

// UnmarshalJSON implements [json.Unmarshaler].
func (s *some[T]) UnmarshalJSON(text []byte) error {
	if strings.HasPrefix(string(text), "[") {
		return json.Unmarshal(text, (*[]T)(s))
	}
	*s = make([]T, 1)
	return json.Unmarshal(text, &(*s)[0])
}

// statement is one of a policy.
type statement struct {
	Effect    string
	Action    some[string]
	Principal principal
}

// principal has the services of a principal. Of "*" there is none.
type principal struct{ services some[string] }

// UnmarshalJSON implements [json.Unmarshaler].
func (p *principal) UnmarshalJSON(text []byte) error {
	if strings.HasPrefix(string(text), `"`) {
		return nil
	}
	var by struct{ Service some[string] }
	err := json.Unmarshal(text, &by)
	p.services = by.Service
	return err
}

// invokes reports whether the statement allows to invoke a function.
func (s *statement) invokes() bool {
	return s.Effect != "Deny" && (len(s.Action) == 0 || slices.ContainsFunc(s.Action, func(action string) bool {
		ok, err := path.Match(strings.ToLower(action), "lambda:invokefunction")
		return ok || err != nil
	}))
}

// asyncServices returns the services that a policy allows to invoke, and that
// do so asynchronously.
func asyncServices(policy string) ([]string, error) {
	var p struct{ Statement some[statement] }
	if err := json.Unmarshal([]byte(policy), &p); err != nil {
		return nil, err
	}
	var all []string
	for _, s := range p.Statement {
		for _, principal := range s.Principal.services {
			service := rules.AsyncService(principal)
			if service != "" && s.invokes() && !slices.Contains(all, service) {
				all = append(all, service)
			}
		}
	}
	return all, nil
}
