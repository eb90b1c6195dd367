package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// deployment is a function that locks, its table and what invokes it, in an
// account of its own. Everything is right except for what a case changes.
type deployment struct {
	table    func(*dynamodb.CreateTableInput) // nil: the right one
	noTable  bool
	ttl      string // attribute; "-" is none
	function func(*lambda.CreateFunctionInput)
	invoked  []invoker
	answers  map[string]any  // what moto does not keep, or fails, by operation
	denied   map[string]bool // operations
	ahead    time.Duration   // of the client's clock
	args     []string        // of the command
}

// invoker adds what invokes the function.
type invoker func(*account)

// account has the clients that make a deployment.
type account struct {
	t        *testing.T
	lambda   *lambda.Client
	sqs      *sqs.Client
	kinesis  *kinesis.Client
	dynamodb *dynamodb.Client
	function string
}

func (a *account) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// emptyZip is an archive without files.
var emptyZip = []byte("PK\x05\x06" + strings.Repeat("\x00", 18))

// deploy makes the deployment.
func (d *deployment) deploy(t *testing.T, endpoint, id string) {
	t.Helper()
	cfg := aws.Config{Region: "eu-west-1", BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")}
	a := &account{t, lambda.NewFromConfig(cfg), sqs.NewFromConfig(cfg), kinesis.NewFromConfig(cfg), dynamodb.NewFromConfig(cfg), "thumbnails"}
	if !d.noTable {
		d.makeTable(a)
	}
	a.makeRole(endpoint)
	in := &lambda.CreateFunctionInput{
		FunctionName: &a.function, Runtime: lambdatypes.RuntimeProvidedal2023, Handler: aws.String("bootstrap"), Timeout: aws.Int32(10),
		Role: aws.String("arn:aws:iam::" + id + ":role/thumbnails"), Code: &lambdatypes.FunctionCode{ZipFile: emptyZip},
		Environment: &lambdatypes.Environment{Variables: map[string]string{"LOCK_TABLE_NAME": "orders-locks"}},
	}
	if d.function != nil {
		d.function(in)
	}
	_, err := a.lambda.CreateFunction(t.Context(), in)
	a.must(err)
	for _, invoke := range d.invoked {
		invoke(a)
	}
}

// makeRole makes the role of the function, which moto asks for. One request is
// not worth a client.
func (a *account) makeRole(endpoint string) {
	a.t.Helper()
	form := url.Values{"Action": {"CreateRole"}, "Version": {"2010-05-08"}, "RoleName": {"thumbnails"}, "AssumeRolePolicyDocument": {"{}"}}
	r, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	a.must(err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=id/20260101/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=0")
	out, err := http.DefaultClient.Do(r)
	a.must(err)
	_ = out.Body.Close()
	if out.StatusCode != http.StatusOK {
		a.t.Fatalf("CreateRole: %s", out.Status)
	}
}

func (d *deployment) makeTable(a *account) {
	table, ctx := "orders-locks", a.t.Context()
	in := &dynamodb.CreateTableInput{
		TableName: &table, BillingMode: dynamodbtypes.BillingModePayPerRequest,
		AttributeDefinitions: []dynamodbtypes.AttributeDefinition{{AttributeName: aws.String("lock"), AttributeType: dynamodbtypes.ScalarAttributeTypeS}},
		KeySchema:            []dynamodbtypes.KeySchemaElement{{AttributeName: aws.String("lock"), KeyType: dynamodbtypes.KeyTypeHash}},
	}
	if d.table != nil {
		d.table(in)
	}
	_, err := a.dynamodb.CreateTable(ctx, in)
	a.must(err)
	if d.ttl != "-" {
		attribute := d.ttl
		if attribute == "" {
			attribute = "deleteAfter"
		}
		_, err = a.dynamodb.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{TableName: &table, TimeToLiveSpecification: &dynamodbtypes.TimeToLiveSpecification{AttributeName: &attribute, Enabled: aws.Bool(true)}})
		a.must(err)
	}
}

// mapping makes an event source mapping that is right for a source.
func (a *account) mapping(arn string, change func(*lambda.CreateEventSourceMappingInput)) {
	a.t.Helper()
	in := &lambda.CreateEventSourceMappingInput{
		FunctionName: &a.function, EventSourceArn: &arn,
		FunctionResponseTypes: []lambdatypes.FunctionResponseType{lambdatypes.FunctionResponseTypeReportBatchItemFailures},
	}
	if !strings.Contains(arn, ":sqs:") {
		in.StartingPosition, in.MaximumRetryAttempts = lambdatypes.EventSourcePositionTrimHorizon, aws.Int32(5)
		in.DestinationConfig = &lambdatypes.DestinationConfig{OnFailure: &lambdatypes.OnFailure{Destination: aws.String(a.queue("kept", nil))}}
	}
	if change != nil {
		change(in)
	}
	_, err := a.lambda.CreateEventSourceMapping(a.t.Context(), in)
	a.must(err)
}

// fromQueue invokes the function from a queue with these attributes, and those
// of a right one.
func fromQueue(attributes map[string]string, change func(*lambda.CreateEventSourceMappingInput)) invoker {
	return func(a *account) {
		fifo := map[string]string{}
		if attributes["FifoQueue"] != "" {
			fifo["FifoQueue"] = "true"
		}
		if attributes["DeadRetention"] == "" {
			fifo["MessageRetentionPeriod"] = "1209600"
		}
		dead := a.queue("failed", fifo)
		all := map[string]string{"VisibilityTimeout": "60", "RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":5}`, dead)}
		for name, value := range attributes {
			if all[name] = strings.ReplaceAll(value, "DEAD", dead); value == "" || name == "DeadRetention" {
				delete(all, name)
			}
		}
		a.mapping(a.queue("uploads", all), change)
	}
}

// queue makes a queue and returns its ARN.
func (a *account) queue(name string, attributes map[string]string) string {
	a.t.Helper()
	if attributes["FifoQueue"] == "true" {
		name += ".fifo"
	}
	out, err := a.sqs.CreateQueue(a.t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	a.must(err)
	part := strings.Split(*out.QueueUrl, "/")
	return "arn:aws:sqs:eu-west-1:" + part[len(part)-2] + ":" + name
}

// deleteQueue deletes a queue.
func deleteQueue(name string) invoker {
	return func(a *account) {
		out, err := a.sqs.GetQueueUrl(a.t.Context(), &sqs.GetQueueUrlInput{QueueName: &name})
		a.must(err)
		_, err = a.sqs.DeleteQueue(a.t.Context(), &sqs.DeleteQueueInput{QueueUrl: out.QueueUrl})
		a.must(err)
	}
}

// fromStream invokes the function from a Kinesis stream.
func fromStream(hours int32, change func(*lambda.CreateEventSourceMappingInput)) invoker {
	return func(a *account) {
		ctx, name := a.t.Context(), aws.String("clicks")
		_, err := a.kinesis.CreateStream(ctx, &kinesis.CreateStreamInput{StreamName: name, ShardCount: aws.Int32(1)})
		a.must(err)
		if hours > 24 {
			_, err = a.kinesis.IncreaseStreamRetentionPeriod(ctx, &kinesis.IncreaseStreamRetentionPeriodInput{StreamName: name, RetentionPeriodHours: &hours})
			a.must(err)
		}
		out, err := a.kinesis.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{StreamName: name})
		a.must(err)
		a.mapping(*out.StreamDescriptionSummary.StreamARN, change)
	}
}

// fromTable invokes the function from the stream of a table.
func fromTable(change func(*lambda.CreateEventSourceMappingInput)) invoker {
	return func(a *account) {
		out, err := a.dynamodb.CreateTable(a.t.Context(), &dynamodb.CreateTableInput{
			TableName: aws.String("orders"), BillingMode: dynamodbtypes.BillingModePayPerRequest,
			AttributeDefinitions: []dynamodbtypes.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: dynamodbtypes.ScalarAttributeTypeS}},
			KeySchema:            []dynamodbtypes.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: dynamodbtypes.KeyTypeHash}},
			StreamSpecification:  &dynamodbtypes.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: dynamodbtypes.StreamViewTypeNewImage},
		})
		a.must(err)
		a.mapping(*out.TableDescription.LatestStreamArn, change)
	}
}

// fromService lets services invoke the function.
func fromService(services ...string) invoker {
	return func(a *account) {
		for i, service := range services {
			_, err := a.lambda.AddPermission(a.t.Context(), &lambda.AddPermissionInput{
				FunctionName: &a.function, Action: aws.String("lambda:InvokeFunction"), Principal: aws.String(service + ".amazonaws.com"), StatementId: aws.String("s" + strconv.Itoa(i)),
			})
			a.must(err)
		}
	}
}

// destined is where the queue "kept" is a destination: of failures or, above
// that, of successes.
type destined func(*lambdatypes.DestinationConfig, string)

// async configures the asynchronous invocations of the function.
func async(retries int32, to destined, age ...int32) invoker {
	return func(a *account) {
		in := &lambda.PutFunctionEventInvokeConfigInput{FunctionName: &a.function, MaximumRetryAttempts: &retries, DestinationConfig: &lambdatypes.DestinationConfig{}}
		to(in.DestinationConfig, a.queue("kept", nil))
		for _, seconds := range age {
			in.MaximumEventAgeInSeconds = &seconds
		}
		_, err := a.lambda.PutFunctionEventInvokeConfig(a.t.Context(), in)
		a.must(err)
	}
}

// stopped leaves no concurrency to the function.
func stopped(a *account) {
	_, err := a.lambda.PutFunctionConcurrency(a.t.Context(), &lambda.PutFunctionConcurrencyInput{FunctionName: &a.function, ReservedConcurrentExecutions: aws.Int32(0)})
	a.must(err)
}

// operationOf returns the operation of a request that the doctor sends.
func operationOf(r *http.Request) string {
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		return target[strings.LastIndex(target, ".")+1:]
	}
	for end, name := range map[string]string{
		"/configuration": "GetFunctionConfiguration", "/policy": "GetPolicy", "/event-invoke-config": "GetFunctionEventInvokeConfig",
		"/event-source-mappings": "ListEventSourceMappings", "/aliases": "ListAliases", "/concurrency": "GetFunctionConcurrency",
	} {
		if strings.HasSuffix(strings.TrimSuffix(r.URL.Path, "/"), end) {
			return name
		}
	}
	return r.URL.Path
}

// front stands before an account of moto. It denies operations, adds to answers
// what moto does not keep, and has another time.
func (d *deployment) front(t *testing.T, moto, account string) string {
	t.Helper()
	u, err := url.Parse(moto)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(u)
	proxy.ModifyResponse = func(r *http.Response) error {
		r.Header.Set("Date", time.Now().Add(-d.ahead).UTC().Format(http.TimeFormat))
		answer, ok := d.answers[operationOf(r.Request)].(map[string]any)
		if !ok {
			return nil
		}
		return amend(r, answer)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := operationOf(r); d.denied[name] {
			w.Header().Set("X-Amzn-Errortype", "AccessDeniedException")
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprintf(w, `{"__type":"AccessDeniedException","Message":"User: arn:aws:iam::123456789012:user/on-call is not authorized to perform: service:%s on resource: it"}`, name)
			return
		}
		if strings.Contains(r.URL.Path, "/resource-policy/") { // moto has none
			d.resourcePolicy(w)
			return
		}
		r.Header.Set("X-Moto-Account-Id", account)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// resourcePolicy answers with the policy that PutResourcePolicy has put.
func (d *deployment) resourcePolicy(w http.ResponseWriter) {
	if policy, ok := d.answers["GetResourcePolicy"]; ok {
		_ = json.NewEncoder(w).Encode(map[string]any{"Policy": policy})
		return
	}
	w.Header().Set("X-Amzn-Errortype", "ResourceNotFoundException")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"Message":"no policy"}`)
}

// amend adds members to an answer.
func amend(r *http.Response, members map[string]any) error {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return err
	}
	_ = r.Body.Close()
	merge(body, members)
	text, err := json.Marshal(body)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	r.Header.Set("Content-Length", strconv.Itoa(len(text)))
	r.Header.Del("X-Amz-Crc32") // of the answer as it was
	return err
}

// merge adds members to an object, and to the objects in it, and in its lists.
func merge(object, members map[string]any) {
	for name, value := range members {
		if list, ok := object[name].([]any); ok {
			for _, e := range list {
				merge(e.(map[string]any), value.(map[string]any))
			}
			continue
		}
		inner, ok := object[name].(map[string]any)
		if more, both := value.(map[string]any); ok && both {
			merge(inner, more)
			continue
		}
		object[name] = value
	}
}
