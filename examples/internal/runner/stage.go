package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/local/locallambda"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// stage is where one act plays: a function, its event, DynamoDB and S3. Every
// act gets a new one.
type stage struct {
	*report
	example
	gate
	event     []byte
	path      string // of the executable
	env       []string
	functions []*locallambda.Platform // the last one is in use
	dynamo    *fakedynamo.Server
	client    *dynamodb.Client
	servers   []*httptest.Server
	wg        sync.WaitGroup

	loses   atomic.Bool  // the bank's next answer gets lost
	charged sync.Map     // the ids that Stripe has seen
	dead    atomic.Int64 // how many messages are in the dead-letter queue

	mu      sync.Mutex
	log     []string        // what the functions printed, and the objects they wrote
	visible []time.Duration // the visibility timeouts that the function set
	answers []string        // to the event itself, with the promised label
}

func newStage(ctx context.Context, x example, root, path string, r *report) *stage {
	st := &stage{report: r, example: x, path: path, dynamo: fakedynamo.New()}
	st.gate = gate{asked: map[string]int{}, waiting: make(chan struct{}, 100), opened: make(chan struct{})}
	st.open = sync.OnceFunc(func() { close(st.opened) })
	st.dynamo.OnRequest(st.pass)
	objects := s3mem.New()
	tables, buckets := httptest.NewServer(st.dynamo), httptest.NewServer(st.serveS3(objects))
	others := httptest.NewServer(http.HandlerFunc(st.serveOthers))
	queues := httptest.NewServer(st.queues())
	st.servers = []*httptest.Server{tables, buckets, others, queues}
	st.env = []string{
		"AWS_ENDPOINT_URL_DYNAMODB=" + tables.URL, "AWS_ENDPOINT_URL_S3=" + buckets.URL, "AWS_ENDPOINT_URL_LAMBDA=" + others.URL, dynamostore.TableVariable + "=locks",
		"AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_SESSION_TOKEN=",
		"AWS_LAMBDA_LOG_FORMAT=JSON", "ACCOUNTS_TABLE=accounts", "ARCHIVE_BUCKET=archive-example", "BANK_URL=" + others.URL, "STRIPE_URL=" + others.URL, "ORDERS_TABLE=orders",
		"AWS_ENDPOINT_URL_SQS=" + queues.URL, "DEAD_LETTER_QUEUE_URL=" + queues.URL + "/123456789012/dead", "DURABLE_FUNCTION=fulfil:1",
	}
	st.client = dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", BaseEndpoint: &tables.URL, Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	event, err := os.ReadFile(filepath.Join(root, x.name, "event.json"))
	err = errors.Join(err, st.createTable(ctx, "accounts", "account"), st.createTable(ctx, "orders", "id"), dynamostore.EnsureTable(ctx, st.client, "locks"), objects.CreateBucket("pictures-example"), objects.CreateBucket("archive-example"))
	picture := strings.Repeat("picture ", 128)
	_, object := objects.PutObject("pictures-example", upload, nil, strings.NewReader(picture), int64(len(picture)), nil)
	for account, balance := range x.balances {
		_, put := st.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("accounts"), Item: map[string]types.AttributeValue{
			"account": &types.AttributeValueMemberS{Value: account}, "balance": &types.AttributeValueMemberN{Value: strconv.FormatInt(balance, 10)},
		}})
		err = errors.Join(err, put)
	}
	if st.event = event; st.must("prepare", errors.Join(err, object)) {
		st.start(ctx, x.name)
	}
	return st
}

// createTable creates a table with that partition key.
func (st *stage) createTable(ctx context.Context, name, key string) error {
	_, err := st.client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: &key, KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &key, AttributeType: types.ScalarAttributeTypeS}},
	})
	return err
}

// start starts the example as a function with that name.
func (st *stage) start(ctx context.Context, function string) {
	f, err := locallambda.Start(ctx, locallambda.Config{
		Command: []string{st.path}, Env: st.env, Environments: environments, Timeout: patience, Function: function, Logs: st.logged,
	})
	if st.must("start", err) {
		st.functions = append(st.functions, f)
	}
}

func (st *stage) logged(_ int, text string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.log = append(st.log, text)
}

// end stops the functions. Their log is complete only then: an answer may
// arrive before a line that was printed earlier.
func (st *stage) end() {
	st.open()
	st.wg.Wait()
	for _, f := range st.functions {
		_ = f.Close() // its error is always nil
	}
	for _, s := range st.servers {
		s.Close()
	}
}

// expire ends the lease of a lock.
func (st *stage) expire(ctx context.Context, key string) {
	st.update(ctx, key, "SET heldUntil = :past", &types.AttributeValueMemberS{Value: "2026-01-01T00:00:00.000000Z"})
}

// update changes a time in the row of a lock, as if it had passed. Without a
// row, no claim has come that far, and there is nothing to change.
func (st *stage) update(ctx context.Context, key, expression string, past types.AttributeValue) {
	_, err := st.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String("locks"), Key: map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: key}},
		UpdateExpression: &expression, ExpressionAttributeValues: map[string]types.AttributeValue{":past": past},
		ConditionExpression: aws.String("attribute_exists(stamp)"),
	})
	if !errors.As(err, new(*types.ConditionalCheckFailedException)) {
		st.must("let time pass", err)
	}
}

// due returns the work that the event itself should have caused.
func (st *stage) due() []string {
	if st.turns {
		return slices.Repeat(st.want, len(st.answers))
	}
	return st.want
}

// replayed marks an answer over HTTP that is not the first one.
const replayed = `,"Idempotent-Replayed":"true"`

// effects stops the functions. It checks that they did this work, and that all
// duplicates got the same answer, marked as replayed if any of them is.
func (st *stage) effects(want ...string) {
	st.end()
	got := st.work()
	st.Printf("work done: %s", strings.Join(got, ", "))
	if !slices.Equal(grouped(got), grouped(want)) {
		st.fail("%d pieces of work, want %d: %q", len(got), len(want), want)
	}
	st.checkBalances(want)
	var bare []string
	marked := 0
	for _, a := range st.answers {
		bare = append(bare, strings.Replace(a, replayed, "", 1))
		marked += strings.Count(a, replayed)
	}
	if len(slices.Compact(bare)) > 1 && st.only == nil {
		st.fail("not the same answer: %.300q", st.answers)
	}
	if marked > 0 && marked != len(st.answers)-1 {
		st.fail("%d of %d answers are marked as replayed: %.300q", marked, len(st.answers), st.answers)
	}
}

// checkBalances checks that the work, and nothing else, moved money.
func (st *stage) checkBalances(work []string) {
	balances := maps.Clone(st.balances)
	for _, text := range work {
		if move := strings.Fields(text); len(balances) > 0 {
			amount, err := strconv.ParseInt(move[3], 10, 64)
			st.must("amount", err)
			balances[move[1]] -= amount
			balances[move[2]] += amount
		}
	}
	for account, want := range balances {
		if got := fmt.Sprint(st.dynamo.Item("accounts", account)["balance"]); got != fmt.Sprintf("map[N:%d]", want) {
			st.fail("the balance of %s is %s, want %d", account, got, want)
		}
	}
}

// work returns the values of all work in chronological order, and then the
// account if there is one. If its fence is that of the last object, it reads
// "archived".
func (st *stage) work() []string {
	var work []string
	fence := ""
	st.mu.Lock()
	log := slices.Clone(st.log)
	st.mu.Unlock()
	for _, text := range slices.Sorted(slices.Values(log)) { // by time, which comes first in each line
		var line map[string]any
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber() // with all their digits
		if decoder.Decode(&line) != nil || !slices.Contains(st.messages, fmt.Sprint(line["message"])) {
			continue
		}
		var values []string
		for _, name := range st.values {
			values = append(values, fmt.Sprint(line[name]))
		}
		work = append(work, strings.Join(values, " "))
		fence = fmt.Sprint(line["fence"])
	}
	if item := st.dynamo.Item("accounts", account); item != nil {
		work = append(work, strings.ReplaceAll(fmt.Sprint(item), fence, "archived"))
	}
	return work
}

// grouped sorts work by its first word and keeps the order of work that has the
// same first word: no other order matters.
func grouped(work []string) []string {
	return slices.SortedStableFunc(slices.Values(work), func(a, b string) int { return strings.Compare(strings.Fields(a)[0], strings.Fields(b)[0]) })
}
