package integration_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/lambdalock/lambdalock/integration/servers"
)

// rightDeployments are those of which nothing is wrong.
func rightDeployments() map[string]deployment {
	return map[string]deployment{
		"nothing invokes it": {},
		"a namespace":        {function: variables(map[string]string{"LOCK_TABLE_NAME": "orders-locks", "LOCK_NAMESPACE": "pictures"})},
		"a queue":            {invoked: []invoker{fromQueue(nil, nil)}},
		"a FIFO queue":       {invoked: []invoker{fromFIFO("60")}},
		"a long timeout and visibility": {
			function: timeout(900), invoked: []invoker{fromQueue(map[string]string{"VisibilityTimeout": "5400"}, nil)},
		},
		"a Kinesis stream": {invoked: []invoker{fromStream(24, nil)}},
		"a stream limited by age": {invoked: []invoker{fromStream(24, func(m *lambda.CreateEventSourceMappingInput) {
			m.MaximumRetryAttempts, m.MaximumRecordAgeInSeconds = nil, aws.Int32(3600)
		})}},
		"the stream of a table": {invoked: []invoker{fromTable(nil)}},
		"S3, kept":              {invoked: []invoker{fromService("s3"), async(2, kept)}},
		"S3, dead-letter queue": {
			invoked: []invoker{fromService("s3")},
			answers: map[string]any{"GetFunctionConfiguration": map[string]any{"DeadLetterConfig": map[string]any{"TargetArn": "arn:aws:sns:eu-west-1:123456789012:failed"}}},
		},
		"API Gateway":         {invoked: []invoker{fromService("apigateway")}, function: timeout(900)},
		"a log level of INFO": {answers: logging("INFO")},
		"acknowledged":        {invoked: []invoker{fromQueue(map[string]string{"MessageRetentionPeriod": "1209600"}, nil)}, args: []string{"--acknowledge", "retention,deadLetterRetention"}},
	}
}

// wrongDeployment is one with exactly these lines that are not OK.
type wrongDeployment struct {
	deployment
	want []string
}

// wrongStores are deployments whose store is wrong, or that cannot be read.
func wrongStores() map[string]wrongDeployment {
	return map[string]wrongDeployment{
		"no table":          {deployment{noTable: true}, []string{"error write"}},
		"another key":       {deployment{table: key("id", "S")}, []string{"error write"}},
		"a number as key":   {deployment{table: key("lock", "N")}, []string{"error key"}},
		"a sort key":        {deployment{table: sortKey}, []string{"error write"}},
		"no TTL":            {deployment{ttl: "-"}, []string{"warning ttl"}},
		"another TTL":       {deployment{ttl: "expiresAt"}, []string{"warning ttl"}},
		"little capacity":   {deployment{table: provisioned}, []string{"warning billing"}},
		"a replica":         {deployment{answers: replicated("")}, []string{"error replication"}},
		"strong replicas":   {deployment{answers: replicated("STRONG"), ttl: "-"}, []string{"warning strongGlobalTable"}},
		"a clock behind":    {deployment{ahead: -5 * time.Second}, []string{"warning clock"}},
		"a clock ahead":     {deployment{ahead: 5 * time.Second}, []string{"warning clock"}},
		"no write":          {deployment{denied: map[string]bool{"UpdateItem": true}}, []string{"warning write"}},
		"no read":           {deployment{denied: map[string]bool{"GetItem": true}}, []string{"warning read"}},
		"no list":           {deployment{denied: map[string]bool{"Scan": true}}, []string{"warning unread"}},
		"no description":    {deployment{denied: map[string]bool{"DescribeTable": true}}, []string{"warning unread"}},
		"no TTL to read":    {deployment{denied: map[string]bool{"DescribeTimeToLive": true}}, []string{"warning unread"}},
		"the wrong table":   {deployment{function: variables(map[string]string{"LOCK_TABLE_NAME": "orders-lock"})}, []string{"error write"}},
		"no table's name":   {deployment{function: variables(nil)}, []string{"warning place"}},
		"no policy to read": {deployment{denied: map[string]bool{"GetPolicy": true}}, []string{"warning unread"}},
	}
}

// wrongFunctions are deployments whose function, or what invokes it, is wrong.
func wrongFunctions() map[string]wrongDeployment {
	mute := func(m *lambda.CreateEventSourceMappingInput) { m.FunctionResponseTypes = nil }
	retries := func(n *int32) func(*lambda.CreateEventSourceMappingInput) {
		return func(m *lambda.CreateEventSourceMappingInput) { m.MaximumRetryAttempts = n }
	}
	queue := func(name, value string) []invoker { return []invoker{fromQueue(map[string]string{name: value}, nil)} }
	return map[string]wrongDeployment{
		"a visibility of 59 s":             {deployment{invoked: queue("VisibilityTimeout", "59")}, []string{"warning visibilityTimeout"}},
		"a visibility of one run":          {deployment{function: timeout(30), invoked: queue("VisibilityTimeout", "30")}, []string{"warning visibilityTimeout"}},
		"a FIFO queue too early":           {deployment{invoked: []invoker{fromFIFO("30")}}, []string{"warning visibilityTimeout"}},
		"no dead-letter queue":             {deployment{invoked: queue("RedrivePolicy", "")}, []string{"warning deadLetterQueue"}},
		"one receive":                      {deployment{invoked: queue("RedrivePolicy", `{"deadLetterTargetArn":"DEAD","maxReceiveCount":1}`)}, []string{"warning maxReceiveCount"}},
		"a queue of 14 days":               {deployment{invoked: queue("MessageRetentionPeriod", "1209600")}, []string{"warning deadLetterRetention", "warning retention"}},
		"a dead-letter queue of 4 days":    {deployment{invoked: queue("DeadRetention", "345600")}, []string{"warning deadLetterRetention"}},
		"a dead-letter queue that is gone": {deployment{invoked: []invoker{fromQueue(nil, nil), deleteQueue("failed")}}, []string{"warning deadLetterQueue"}},
		"a window above the visibility":    {deployment{invoked: []invoker{fromQueue(nil, window(1))}}, []string{"warning visibilityTimeout"}},
		"a mute queue":                     {deployment{invoked: []invoker{fromQueue(nil, mute)}}, []string{"warning partialAnswer"}},
		"a disabled queue":                 {deployment{invoked: []invoker{fromQueue(nil, disabled)}}, []string{"warning mapping"}},
		"a queue that is denied":           {deployment{invoked: []invoker{fromQueue(nil, nil)}, denied: map[string]bool{"GetQueueAttributes": true}}, []string{"warning unread"}},
		"a queue that is gone":             {deployment{invoked: []invoker{fromQueue(nil, nil), deleteQueue("uploads")}}, []string{"warning unread"}},
		"a mute stream":                    {deployment{invoked: []invoker{fromStream(24, mute)}}, []string{"warning partialAnswer"}},
		"a stream without limit":           {deployment{invoked: []invoker{fromStream(24, retries(nil))}}, []string{"warning retryLimit"}},
		"a stream that tries once":         {deployment{invoked: []invoker{fromStream(24, retries(aws.Int32(0)))}}, []string{"warning retryAttempts"}},
		"a stream that tries twice":        {deployment{invoked: []invoker{fromStream(24, retries(aws.Int32(1)))}}, []string{"warning retryAttempts"}},
		"a stream, not kept":               {deployment{invoked: []invoker{fromStream(24, func(m *lambda.CreateEventSourceMappingInput) { m.DestinationConfig = nil })}}, []string{"warning failureDestination"}},
		"a stream, kept by nothing":        {deployment{invoked: []invoker{fromStream(24, nil), deleteQueue("kept")}}, []string{"warning failureDestination"}},
		"a tumbling window":                {deployment{invoked: []invoker{fromStream(24, nil)}, answers: mappedWith("TumblingWindowInSeconds", 30)}, []string{"warning tumblingWindow"}},
		"a stream of 7 days":               {deployment{invoked: []invoker{fromStream(168, nil)}}, []string{"warning retention"}},
		"a mute table":                     {deployment{invoked: []invoker{fromTable(mute)}}, []string{"warning partialAnswer"}},
		"a table without limit":            {deployment{invoked: []invoker{fromTable(retries(aws.Int32(-1)))}}, []string{"warning retryLimit"}},
		"S3, not kept":                     {deployment{invoked: []invoker{fromService("s3")}}, []string{"warning failureDestination"}},
		"SNS and rules, not kept":          {deployment{invoked: []invoker{fromService("sns", "events")}}, []string{"warning failureDestination"}},
		"S3, only success is kept":         {deployment{invoked: []invoker{fromService("s3"), async(2, success)}}, []string{"warning failureDestination"}},
		"S3, tried once":                   {deployment{invoked: []invoker{fromService("s3"), async(0, kept)}}, []string{"warning retryAttempts"}},
		"S3, 173 s":                        {deployment{function: timeout(173), invoked: []invoker{fromService("s3"), async(2, kept)}}, []string{"warning asyncTimeout"}},
		"S3, tried twice":                  {deployment{invoked: []invoker{fromService("s3"), async(1, kept)}}, []string{"warning retryAttempts"}},
		"S3, 60 s":                         {deployment{invoked: []invoker{fromService("s3"), async(2, kept, 60)}}, []string{"warning eventAge"}},
		"S3, kept by nothing":              {deployment{invoked: []invoker{fromService("s3"), async(2, kept), deleteQueue("kept")}}, []string{"warning failureDestination"}},
		"a list of services": {deployment{invoked: []invoker{fromService("s3")}, answers: map[string]any{"GetPolicy": map[string]any{
			"Policy": `{"Statement":[{"Effect":"Allow","Action":"lambda:InvokeFunction","Principal":{"Service":["s3.amazonaws.com","sns.amazonaws.com"]}}]}`,
		}}}, []string{"warning failureDestination"}},
		"a resource policy": {deployment{answers: map[string]any{
			"GetResourcePolicy": `{"Statement":{"Effect":"Allow","Action":"lambda:*","Principal":{"Service":["s3.amazonaws.com"]}}}`,
		}}, []string{"warning failureDestination"}},
		"a log level of WARN":  {deployment{answers: logging("WARN")}, []string{"warning logLevel"}},
		"stopped":              {deployment{invoked: []invoker{stopped}}, []string{"warning concurrency"}},
		"a log level of FATAL": {deployment{answers: logging("FATAL")}, []string{"warning logLevel"}},
		"two mistakes":         {deployment{invoked: []invoker{fromQueue(map[string]string{"VisibilityTimeout": "30", "RedrivePolicy": ""}, mute)}}, []string{"warning visibilityTimeout", "warning deadLetterQueue", "warning partialAnswer"}},
	}
}

func kept(c *lambdatypes.DestinationConfig, arn string) {
	c.OnFailure = &lambdatypes.OnFailure{Destination: &arn}
}

func success(c *lambdatypes.DestinationConfig, arn string) {
	c.OnSuccess = &lambdatypes.OnSuccess{Destination: &arn}
}

func variables(all map[string]string) func(*lambda.CreateFunctionInput) {
	return func(f *lambda.CreateFunctionInput) { f.Environment = &lambdatypes.Environment{Variables: all} }
}

func timeout(seconds int32) func(*lambda.CreateFunctionInput) {
	return func(f *lambda.CreateFunctionInput) { f.Timeout = &seconds }
}

func logging(level string) map[string]any {
	return map[string]any{"GetFunctionConfiguration": map[string]any{"LoggingConfig": map[string]any{"LogFormat": "JSON", "ApplicationLogLevel": level}}}
}

// replicated adds what moto does not have: a replica of the table.
func replicated(consistency string) map[string]any {
	return map[string]any{"DescribeTable": map[string]any{"Table": map[string]any{
		"Replicas": []any{map[string]any{"RegionName": "us-east-1"}}, "MultiRegionConsistency": consistency,
	}}}
}

func fromFIFO(visibility string) invoker {
	return fromQueue(map[string]string{"FifoQueue": "true", "VisibilityTimeout": visibility, "RedrivePolicy": `{"deadLetterTargetArn":"DEAD","maxReceiveCount":5}`}, nil)
}

func window(seconds int32) func(*lambda.CreateEventSourceMappingInput) {
	return func(m *lambda.CreateEventSourceMappingInput) { m.MaximumBatchingWindowInSeconds = &seconds }
}

// mappedWith adds what moto does not keep to all mappings of a list.
func mappedWith(name string, value any) map[string]any {
	return map[string]any{"ListEventSourceMappings": map[string]any{"EventSourceMappings": map[string]any{name: value}}}
}

func disabled(m *lambda.CreateEventSourceMappingInput) { m.Enabled = aws.Bool(false) }

func key(name string, kind dynamodbtypes.ScalarAttributeType) func(*dynamodb.CreateTableInput) {
	return func(in *dynamodb.CreateTableInput) {
		in.AttributeDefinitions[0] = dynamodbtypes.AttributeDefinition{AttributeName: &name, AttributeType: kind}
		in.KeySchema[0].AttributeName = &name
	}
}

func sortKey(in *dynamodb.CreateTableInput) {
	in.AttributeDefinitions = append(in.AttributeDefinitions, dynamodbtypes.AttributeDefinition{AttributeName: aws.String("event"), AttributeType: dynamodbtypes.ScalarAttributeTypeS})
	in.KeySchema = append(in.KeySchema, dynamodbtypes.KeySchemaElement{AttributeName: aws.String("event"), KeyType: dynamodbtypes.KeyTypeRange})
}

func provisioned(in *dynamodb.CreateTableInput) {
	in.BillingMode = dynamodbtypes.BillingModeProvisioned
	in.ProvisionedThroughput = &dynamodbtypes.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(5), WriteCapacityUnits: aws.Int64(5)}
}

// TestDoctor deploys functions to moto, each to an account of its own, and
// examines them with the command that users install.
func TestDoctor(t *testing.T) {
	server, file := servers.Moto(t), buildCommand(t)
	cases := wrongStores()
	for name, c := range wrongFunctions() {
		cases[name] = c
	}
	if len(cases) < 30 || len(rightDeployments()) < 10 {
		t.Fatalf("%d wrong deployments and %d right ones", len(cases), len(rightDeployments()))
	}
	for name, d := range rightDeployments() {
		cases["right: "+name] = wrongDeployment{d, nil}
	}
	id := 100000000000
	for name, c := range cases {
		id++
		account := fmt.Sprint(id)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.deploy(t, new(deployment).front(t, server.Endpoint, account), account)
			got, status := examine(t, file, c.front(t, server.Endpoint, account), append(c.args, "--function", "thumbnails")...)
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
			if want := slices.ContainsFunc(c.want, func(l string) bool { return l[0] == 'e' }); want != (status == 1) || status > 1 {
				t.Errorf("status %d after %q", status, got)
			}
		})
	}
}

// buildCommand returns the path of lambdalock.
func buildCommand(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lambdalock")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".")
	build.Dir = "../cmd/lambdalock"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// examine returns the lines of doctor that are not OK, as "level check", and
// the status.
func examine(t *testing.T, file, endpoint string, args ...string) (bad []string, status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), file, append([]string{"doctor", "--json"}, args...)...)
	cmd.Env = accountEnvironment(endpoint)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		status = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var l struct{ Level, Check, For, Text string }
		if err := d.Decode(&l); err != nil {
			t.Fatal(err)
		}
		if l.Level != "ok" {
			bad = append(bad, l.Level+" "+l.Check)
		}
	}
	if status > 1 {
		t.Errorf("%s", stderr.String())
	}
	return bad, status
}
