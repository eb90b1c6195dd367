package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

const (
	locks    = "locks"
	accounts = "accounts"
	archive  = "archive-example"
	pictures = "pictures-example" // the bucket of s3upload/event.json
	region   = "eu-central-1"
)

// world is what the functions find outside: DynamoDB and S3, new for every act.
type world struct {
	journal *journal
	dynamo  *fakedynamo.Server
	tables  *dynamodb.Client // past the gate and the journal
	s3      *s3.Client       // past the journal
	gate    gate
	servers []*http.Server
	env     []string
}

func newWorld(ctx context.Context) (*world, error) {
	w := &world{journal: newJournal(), dynamo: fakedynamo.New()}
	objects := gofakes3.New(s3mem.New(), gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	var at [4]string
	for i, h := range []http.Handler{w.dynamo, http.HandlerFunc(w.serveDynamo), objects, w.watchS3(objects)} {
		var err error
		if at[i], err = w.serve(h); err != nil {
			return w, err
		}
	}
	w.env = []string{
		"AWS_ENDPOINT_URL_DYNAMODB=" + at[1], "AWS_ENDPOINT_URL_S3=" + at[3], dynamostore.TableVariable + "=" + locks,
		"AWS_REGION=" + region, "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_SESSION_TOKEN=",
		"AWS_LAMBDA_LOG_FORMAT=JSON", "ACCOUNTS_TABLE=" + accounts, "ARCHIVE_BUCKET=" + archive,
	}
	w.connect(at[0], at[2])
	return w, w.furnish(ctx)
}

func (w *world) connect(dynamo, bucket string) {
	keys := credentials.NewStaticCredentialsProvider("local", "local", "")
	w.tables = dynamodb.New(dynamodb.Options{Region: region, BaseEndpoint: &dynamo, Credentials: keys})
	w.s3 = s3.New(s3.Options{Region: region, BaseEndpoint: &bucket, Credentials: keys, UsePathStyle: true})
}

// furnish makes the tables and buckets that the examples expect.
func (w *world) furnish(ctx context.Context) error {
	if err := dynamostore.EnsureTable(ctx, w.tables, locks); err != nil {
		return err
	}
	_, err := w.tables.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String(accounts), BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("account"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("account"), AttributeType: types.ScalarAttributeTypeS}},
	})
	if err != nil {
		return err
	}
	for _, bucket := range []string{pictures, archive} {
		if _, err := w.s3.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &bucket}); err != nil {
			return err
		}
	}
	return nil
}

// serve starts a server on the loopback interface and returns its address.
func (w *world) serve(h http.Handler) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	w.servers = append(w.servers, server)
	go func() { _ = server.Serve(listener) }() // ends with close
	return "http://" + listener.Addr().String(), nil
}

func (w *world) close() {
	w.gate.open()
	for _, s := range w.servers {
		_ = s.Close()
	}
}

// watchS3 notes the objects that are written.
func (w *world) watchS3(objects http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		noted := &statusWriter{ResponseWriter: rw, status: http.StatusOK}
		path := r.URL.Path
		objects.ServeHTTP(noted, r)
		if r.Method == http.MethodPut && noted.status == http.StatusOK {
			w.journal.add(entry{put: path})
		}
	})
}

// update is what matters of an UpdateItem request.
type update struct {
	TableName        string
	UpdateExpression string
	Key              map[string]struct{ S string }
}

func (u update) row() string {
	for _, v := range u.Key {
		return v.S
	}
	return ""
}

func (u update) acquires() bool {
	return u.TableName == locks && strings.HasPrefix(u.UpdateExpression, "SET lease = ")
}

func (u update) releases() bool {
	return u.TableName == locks && strings.Contains(u.UpdateExpression, "REMOVE lease")
}

// serveDynamo lets requests through the gate to the tables, and notes them down.
func (w *world) serveDynamo(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var u update
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".UpdateItem") && json.Unmarshal(body, &u) == nil {
		if !w.gate.pass(r.Context(), u) {
			panic(http.ErrAbortHandler)
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	noted := &statusWriter{ResponseWriter: rw, status: http.StatusOK}
	w.dynamo.ServeHTTP(noted, r)
	if u.TableName != "" {
		w.journal.add(entry{dynamo: u, status: noted.status})
	}
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (s *statusWriter) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}
