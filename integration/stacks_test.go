package integration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// stacks is an account to which templates are deployed. A few requests are not
// worth the clients of their services.
type stacks struct {
	t        *testing.T
	endpoint string
	account  string
}

func newStacks(t *testing.T, moto, account string) *stacks {
	return &stacks{t, new(deployment).front(t, moto, account), account}
}

func (s *stacks) config() aws.Config {
	return aws.Config{Region: "eu-west-1", BaseEndpoint: &s.endpoint, Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")}
}

// ask sends a request to a service and decodes the answer.
func (s *stacks) ask(service, kind, target, body string, decode func([]byte) error) {
	s.t.Helper()
	r := expect.Value(http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.endpoint, strings.NewReader(body)))(s.t)
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=id/20260101/eu-west-1/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
	if target != "" {
		r.Header.Set("X-Amz-Target", target)
	}
	out := expect.Value(http.DefaultClient.Do(r))(s.t)
	defer out.Body.Close()
	text := expect.Value(io.ReadAll(out.Body))(s.t)
	if out.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s\n%s", service, out.Status, text)
	}
	expect.Must(s.t, decode(text))
}

// query asks a service that takes forms and answers in XML.
func (s *stacks) query(service, version, action string, form url.Values, into any) {
	s.t.Helper()
	form.Set("Action", action)
	form.Set("Version", version)
	s.ask(service, "application/x-www-form-urlencoded", "", form.Encode(), func(text []byte) error {
		if into == nil {
			return nil
		}
		return xml.Unmarshal(text, into)
	})
}

// logs asks CloudWatch Logs.
func (s *stacks) logs(operation string, in, into any) {
	s.t.Helper()
	body := expect.Value(json.Marshal(in))(s.t)
	s.ask("logs", "application/x-amz-json-1.1", "Logs_20140328."+operation, string(body), func(text []byte) error {
		if into == nil {
			return nil
		}
		return json.Unmarshal(text, into)
	})
}

// upload makes a bucket with objects.
func (s *stacks) upload(bucket string, objects map[string][]byte) {
	s.t.Helper()
	client := s3.NewFromConfig(s.config(), func(o *s3.Options) { o.UsePathStyle, o.Region = true, "us-east-1" })
	expect.Value(client.CreateBucket(s.t.Context(), &s3.CreateBucketInput{Bucket: &bucket}))(s.t)
	for key, text := range objects {
		expect.Value(client.PutObject(s.t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: aws.String(key), Body: bytes.NewReader(text)}))(s.t)
	}
}

// countedIn returns the patterns of a log group's metric filters, by namespace
// and name of the metric.
func (s *stacks) countedIn(group string) map[string]string {
	s.t.Helper()
	var list struct {
		MetricFilters []struct {
			FilterPattern         string
			MetricTransformations []struct{ MetricNamespace, MetricName string }
		}
	}
	s.logs("DescribeMetricFilters", map[string]any{"logGroupName": group}, &list)
	patterns := map[string]string{}
	for _, f := range list.MetricFilters {
		for _, m := range f.MetricTransformations {
			patterns[m.MetricNamespace+" "+m.MetricName] = f.FilterPattern
		}
	}
	return patterns
}

// watched returns the metrics from log lines that alarms watch.
func (s *stacks) watched() (metrics []string) {
	s.t.Helper()
	var list struct {
		Alarms []struct{ Namespace, MetricName string } `xml:"DescribeAlarmsResult>MetricAlarms>member"`
	}
	s.query("monitoring", "2010-08-01", "DescribeAlarms", url.Values{}, &list)
	for _, a := range list.Alarms {
		if strings.HasPrefix(a.Namespace, "lambdalock/") {
			metrics = append(metrics, a.Namespace+" "+a.MetricName)
		}
	}
	slices.Sort(metrics)
	return metrics
}

// put writes lines into a log group.
func (s *stacks) put(group string, lines []string) {
	s.t.Helper()
	to := map[string]any{"logGroupName": group, "logStreamName": "2026/11/21/[$LATEST]0a0b"}
	s.logs("CreateLogStream", to, nil)
	var events []any
	for _, line := range lines {
		events = append(events, map[string]any{"timestamp": time.Now().UnixMilli(), "message": line})
	}
	to["logEvents"] = events
	s.logs("PutLogEvents", to, nil)
}

// matching returns the lines of a log group that match a pattern.
func (s *stacks) matching(group, pattern string) (lines []string) {
	s.t.Helper()
	var found struct{ Events []struct{ Message string } }
	s.logs("FilterLogEvents", map[string]any{"logGroupName": group, "filterPattern": pattern}, &found)
	for _, e := range found.Events {
		lines = append(lines, e.Message)
	}
	return lines
}

const cloudFormation = "2010-05-15" // the version of its API

// deploy makes a stack of a template, which must succeed, and returns the
// physical names of its resources.
func (s *stacks) deploy(name, template string, parameters map[string]string) map[string]string {
	s.t.Helper()
	form := url.Values{"StackName": {name}, "TemplateBody": {template}, "Capabilities.member.1": {"CAPABILITY_IAM"}}
	n := 0
	for key, value := range parameters {
		n++
		form.Set(fmt.Sprintf("Parameters.member.%d.ParameterKey", n), key)
		form.Set(fmt.Sprintf("Parameters.member.%d.ParameterValue", n), value)
	}
	s.query("cloudformation", cloudFormation, "CreateStack", form, nil)
	var stack struct {
		Status []string `xml:"DescribeStacksResult>Stacks>member>StackStatus"`
	}
	s.query("cloudformation", cloudFormation, "DescribeStacks", url.Values{"StackName": {name}}, &stack)
	if len(stack.Status) != 1 || stack.Status[0] != "CREATE_COMPLETE" {
		s.t.Fatalf("the stack %s is %q", name, stack.Status)
	}
	return s.resources(name)
}

// resources returns the physical names of a stack's resources by their logical
// ids.
func (s *stacks) resources(name string) map[string]string {
	s.t.Helper()
	var list struct {
		Resources []struct {
			LogicalResourceId, PhysicalResourceId string //nolint:staticcheck // their names
		} `xml:"DescribeStackResourcesResult>StackResources>member"`
	}
	s.query("cloudformation", cloudFormation, "DescribeStackResources", url.Values{"StackName": {name}}, &list)
	names := map[string]string{}
	for _, r := range list.Resources {
		names[r.LogicalResourceId] = r.PhysicalResourceId
	}
	return names
}

// run runs the command on this account, and returns what it printed.
func (s *stacks) run(ctx context.Context, command string, args ...string) (stdout, stderr string, err error) {
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Env = accountEnvironment(s.endpoint)
	var out, told strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &told
	err = cmd.Run()
	return out.String(), told.String(), err
}

// accountEnvironment lets a command work in the account at an endpoint.
func accountEnvironment(endpoint string) []string {
	return append(os.Environ(), "AWS_ENDPOINT_URL="+endpoint, "AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret",
		"AWS_CONFIG_FILE=/nowhere", "AWS_SHARED_CREDENTIALS_FILE=/nowhere", "AWS_PROFILE=", "LAMBDALOCK_STORE=", "LOCK_TABLE_NAME=", "LOCK_NAMESPACE=")
}
