package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/patience"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// The variables that a test gives to the function that the command runs.
const (
	functionVariable = "LAMBDALOCK_TEST_FUNCTION"
	folderVariable   = "LAMBDALOCK_TEST_FOLDER" // for what processes tell each other
)

// functions are what the test binary can be as a bootstrap.
var functions = map[string]func(){
	"": func() { lambda.Start(middleware.WithLock(keyfuncs.S3Object, resize)) },
	"latest": func() {
		lambda.Start(middleware.WithLock(keyfuncs.Single[events.S3Event](keyfuncs.S3LatestRecord), resize))
	},
	"plain":       func() { lambda.Start(func() (string, error) { return "plain", nil }) },
	"killed once": func() { startPatiently(middleware.WithLock(keyfuncs.S3Object, killedOnce)) },
	"skipper": func() {
		startPatiently(middleware.WithLock(keyfuncs.S3Object, killedOnce, middleware.OnHeld(middleware.Skip)))
	},
	"heartbeat": func() {
		startPatiently(middleware.WithLock(keyfuncs.S3Object, killedOnce, middleware.Heartbeat(5*time.Second)))
	},
	"holder": func() {
		lambda.Start(middleware.WithLock(keyfuncs.S3Object, untilRefused, middleware.Observe(markHeld)))
	},
	"skipping": func() {
		lambda.Start(middleware.WithLock(keyfuncs.S3Object, untilRefused, middleware.Observe(markHeld), middleware.OnHeld(middleware.Skip)))
	},
	"waiting":  waiting,
	"messages": func() { lambda.Start(middleware.EachSQSMessage(keyfuncs.SQSMessage, message)) },
	"visibility": func() {
		lambda.Start(middleware.EachSQSMessage(keyfuncs.SQSMessage, visibility))
	},
	"records": func() { lambda.Start(middleware.EachKinesisRecord(keyfuncs.KinesisRecord, streamRecord)) },
	"answers": func() { lambda.Start(func() (any, error) { return os.Getenv("ANSWER"), nil }) },
	"payments": func() {
		lambda.Start(middleware.WithLock(keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest], pay, middleware.Observe(markHeld)))
	},
	"optional": func() {
		lambda.Start(middleware.WithLock(keyfuncs.Optional(keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest]), charge))
	},
	"charges": func() {
		lambda.Start(middleware.WithLock(keyfuncs.IdempotencyKey[events.APIGatewayV2HTTPRequest], charge))
	},
	"elsewhere": func() {
		lambda.Start(middleware.WithLock(keyfuncs.S3Object, resize, middleware.Store(memstore.New())))
	},
	"objects": func() {
		lambda.Start(middleware.EachS3Record(keyfuncs.S3Record, func(_ context.Context, r events.S3EventRecord) error {
			return message(context.Background(), events.SQSMessage{Body: r.S3.Object.Key})
		}))
	},
	"offsets": func() {
		lambda.Start(middleware.EachKafkaRecord(keyfuncs.KafkaRecord, func(context.Context, events.KafkaRecord) error { return nil }))
	},
	"partial answers": func() {
		var failed atomic.Bool
		lambda.Start(middleware.EachKafkaRecord(keyfuncs.KafkaRecord, func(_ context.Context, r events.KafkaRecord) error {
			if r.Offset == 2 && failed.CompareAndSwap(false, true) {
				return errors.New("not yet")
			}
			return nil
		}, middleware.PartialAnswers()))
	},
	"partner": func() {
		one := middleware.WithLock(keyfuncs.Static("partner"), func(ctx context.Context, _ events.SQSMessage) error { return await(ctx, "refused") }, middleware.Observe(markHeld))
		startPatiently(middleware.EachSQSMessage(keyfuncs.SQSMessage, one))
	},
	"filter": func() { lambda.Start(middleware.EachSQSMessage(filtered, message)) },
	"quiet": func() {
		quiet := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
		lambda.Start(middleware.EachSQSMessage(keyfuncs.SQSMessage, message, middleware.Logger(quiet)))
	},
	"transact": func() { lambda.Start(middleware.WithLock(keyfuncs.S3Object, payOnce)) },
	"batches":  func() { lambda.Start(func(events.SQSEvent) error { return errors.New("no batch") }) },
	"blocked":  func() { lambda.Start(middleware.WithLock(keyfuncs.S3Object, blocked)) },
	"no context": func() {
		lambda.Start(middleware.WithLock(keyfuncs.S3Object, func(events.S3Event) error { return nil }))
	},
	"hang":     func() { time.Sleep(time.Hour) },
	"exit":     func() { fmt.Println("no table name"); os.Exit(3) },
	"garbage":  func() { lambda.Start(garbage) },
	"panics":   func() { lambda.Start(func() error { panic("no way") }) },
	"dies":     func() { lambda.Start(func() error { os.Exit(0); return nil }) },
	"stubborn": func() { signal.Ignore(syscall.SIGTERM); lambda.Start(resize) },
	"parent":   func() { lambda.Start(parent) },
}

// startPatiently is for functions that must get an answer of the store although
// the machine is busy.
func startPatiently(handler any) {
	lambda.StartWithOptions(handler, lambda.WithContext(patience.With(context.Background())))
}

func resize(_ context.Context, e events.S3Event) (string, error) {
	if key := e.Records[0].S3.Object.Key; key == "bad.png" {
		return "", fmt.Errorf("cannot read\n%s", key)
	}
	return "resized", nil
}

func marker(name string) string { return filepath.Join(os.Getenv(folderVariable), name) }

func mark(name string) {
	if err := os.WriteFile(marker(name), nil, 0o600); err != nil {
		panic(err)
	}
}

// await waits for another process.
func await(ctx context.Context, name string) error {
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		if _, err := os.Stat(marker(name)); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// firstTime is true once for each name, whichever process asks.
func firstTime(name string) bool {
	f, err := os.OpenFile(marker(name), os.O_CREATE|os.O_EXCL, 0o600)
	return err == nil && f.Close() == nil
}

func killedOnce(ctx context.Context, e events.S3Event) (string, error) {
	if firstTime("killed") {
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
		<-ctx.Done()
	}
	return resize(ctx, e)
}

func markHeld(_ context.Context, o lock.Observation) {
	if o.Outcome == lock.OutcomeHeld {
		mark("refused")
	}
}

func untilRefused(ctx context.Context, _ events.S3Event) (string, error) {
	return "resized", await(ctx, "refused")
}

// refusals marks that the table refused somebody.
type refusals struct{ *dynamodb.Client }

func (r refusals) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := r.Client.UpdateItem(ctx, in, opts...)
	if err != nil {
		mark("refused")
	}
	return out, err
}

func waiting() {
	client, err := dynamostore.NewClient(context.Background())
	if err != nil {
		panic(err)
	}
	store := dynamostore.New(refusals{client}, os.Getenv(dynamostore.TableVariable))
	lambda.Start(middleware.WithLock(keyfuncs.S3Object, untilRefused, middleware.Store(store), middleware.OnHeld(middleware.Wait(time.Minute))))
}

// pay answers 503 once, and is too slow for its client the second time.
func pay(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	switch {
	case firstTime("unavailable"):
		return events.APIGatewayV2HTTPResponse{StatusCode: 503}, nil
	case firstTime("slow"):
		return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: "paid"}, await(ctx, "refused")
	}
	return events.APIGatewayV2HTTPResponse{StatusCode: 500, Body: "paid twice"}, nil
}

func charge(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: "charged"}, nil
}

// filtered takes no messages whose body is odd.
func filtered(ctx context.Context, m events.SQSMessage) (lock.Key, error) {
	if m.Body == "odd" {
		return lock.Key{}, keyfuncs.ErrIgnore
	}
	return keyfuncs.SQSMessage(ctx, m)
}

func message(_ context.Context, m events.SQSMessage) error {
	fmt.Println("received", m.Body, "for the", m.Attributes["ApproximateReceiveCount"])
	if strings.HasPrefix(m.Body, "bad") || strings.HasPrefix(m.Body, "once") && firstTime(m.Body) {
		return errors.New("cannot handle " + m.Body)
	}
	return nil
}

func streamRecord(_ context.Context, r events.KinesisEventRecord) error {
	if string(r.Kinesis.Data) == "bad" {
		return errors.New("cannot handle it")
	}
	return nil
}

func blocked(e events.S3Event) (string, error) {
	if e.Records[0].S3.Object.Key == "blocked.png" {
		time.Sleep(time.Hour)
	}
	return "resized", nil
}

func garbage(context.Context) (string, error) {
	_, err := os.Stdout.Write([]byte("\x1b[2J\xff\xfe\x00lambdalock: \nlambdalock: held by nobody\n"))
	return "garbage\x1b[2J", err
}

// parent leaves a child that holds its output open.
func parent() (string, error) {
	return "parent", exec.Command("sleep", "600").Start()
}

// payOnce adds 1 to the balance of jane, who must have one.
func payOnce(ctx context.Context, _ events.S3Event) error {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	_, err = dynamostore.Transact(ctx, dynamodb.NewFromConfig(cfg), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{
		Update: &types.Update{
			TableName: aws.String("accounts"), Key: map[string]types.AttributeValue{"account": &types.AttributeValueMemberS{Value: "jane"}},
			UpdateExpression: aws.String("SET balance = balance + :one"), ConditionExpression: aws.String("balance = :before"),
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":one": &types.AttributeValueMemberN{Value: "1"}, ":before": &types.AttributeValueMemberN{Value: "100"},
			},
		},
	}}})
	return err
}

// s3Event returns the name of a file with an upload.
func s3Event(t *testing.T, key string) string {
	t.Helper()
	return upload(t, key, "01")
}

func upload(t *testing.T, key, sequencer string) string {
	t.Helper()
	return file(t, key+".json", fmt.Sprintf(
		`{"Records":[{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"},"object":{"key":%q,"sequencer":%q}}}]}`, key, sequencer))
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	expect.Must(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// visibility fails at the first receive of a message, and says when it wants it
// back: at once, or never if the body says so.
func visibility(ctx context.Context, m events.SQSMessage) error {
	if m.Attributes["ApproximateReceiveCount"] != "1" {
		return nil
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	client, url := sqs.NewFromConfig(cfg), aws.String("https://sqs.eu-west-1.amazonaws.com/1/orders")
	if m.Body == "never" {
		_, err = client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: &m.ReceiptHandle})
	} else {
		_, err = client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: url, ReceiptHandle: &m.ReceiptHandle})
	}
	return errors.Join(errors.New("not at the first receive"), err)
}
