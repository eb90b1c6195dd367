package integration_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/objectstore"
	"github.com/lambdalock/lambdalock/stores/redisstore/redisquorum"
)

// TestConformance runs the public suite, as any store's own test would. The
// clock of a server with a clock of its own is moved on the way to the client.
func TestConformance(t *testing.T) {
	inEach(t, func(t *testing.T, b backend, p place) {
		w := newWire(0)
		h := locktest.Harness{
			Majority:  len(p.Endpoints) > 1,
			MakeNewer: func(t *testing.T, _ driver.Store, name string) { makeNewer[p.Kind](t, p, name) },
		}
		if b.ownClock {
			w.clock = newMovedClock()
			h.Advance = w.clock.advance
		}
		store := p.store(t, w)
		if q, ok := store.(*redisquorum.Store); ok {
			store = untimed{q}
		}
		h.Open = func(*testing.T) driver.Store { return store }
		locktest.Run(t, h)
	})
}

// makeNewer writes rows of a later format, by the kind of store.
var makeNewer = map[string]func(*testing.T, place, string){
	"table":  newerItem,
	"redis":  newerHash,
	"s3":     newerObject,
	"azblob": newerBlob,
}

func newerItem(t *testing.T, p place, name string) {
	w := newWire(0)
	defer w.next.CloseIdleConnections()
	_, err := newClient(p.Endpoints[0], w).UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(table), Key: map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: name}},
		UpdateExpression:          aws.String("SET rowFormat = :two"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":two": &types.AttributeValueMemberN{Value: "2"}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func newerHash(t *testing.T, p place, name string) {
	written := 0
	for _, endpoint := range p.Endpoints {
		client := expect.Value(newRedis(endpoint))(t)
		if err := client.HSet(t.Context(), "lambdalock:"+name, "rowFormat", "2").Err(); err != nil {
			t.Log(err) // the node that is down
		} else {
			written++
		}
		_ = client.Close()
	}
	if written <= len(p.Endpoints)/2 {
		t.Fatalf("only %d of %d servers have the row", written, len(p.Endpoints))
	}
}

func newerObject(t *testing.T, p place, name string) {
	w := newWire(0)
	defer w.next.CloseIdleConnections()
	client, key := newS3(p.Endpoints[0], w), aws.String("locks/"+objectstore.Key(name))
	got := expect.Value(client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucket), Key: key}))(t)
	if _, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: key, Body: bytes.NewReader(newerJSON(t, got.Body))}); err != nil {
		t.Fatal(err)
	}
}

func newerBlob(t *testing.T, p place, name string) {
	w := newWire(0)
	defer w.next.CloseIdleConnections()
	locks := expect.Value(newContainer(p.Endpoints[0], w))(t)
	client := locks.NewBlockBlobClient("locks/" + objectstore.Key(name))
	got := expect.Value(client.DownloadStream(t.Context(), nil))(t)
	if _, err := client.UploadBuffer(t.Context(), newerJSON(t, got.Body), nil); err != nil {
		t.Fatal(err)
	}
}

// newerJSON returns the row of an object in a later format.
func newerJSON(t *testing.T, body io.ReadCloser) []byte {
	t.Helper()
	defer body.Close()
	var row map[string]any
	d := json.NewDecoder(body)
	d.UseNumber() // a fence does not fit in a float64
	expect.Must(t, d.Decode(&row))
	row["rowFormat"] = 2
	text := expect.Value(json.Marshal(row))(t)
	return text
}

func TestEnsureTable(t *testing.T) {
	for _, backend := range tableServers {
		t.Run(backend.name, func(t *testing.T) {
			client := newTable(t, backend.start(t))
			if err := dynamostore.EnsureTable(t.Context(), client, table); err != nil {
				t.Errorf("second call: %v", err)
			}
			for name, in := range otherTables {
				in.TableName, in.BillingMode = aws.String(name), types.BillingModePayPerRequest
				t.Run(name, func(t *testing.T) {
					if _, err := client.CreateTable(t.Context(), &in); err != nil {
						t.Skipf("this server has no such tables: %v", err)
					}
					if err := dynamostore.EnsureTable(t.Context(), client, name); !errors.As(err, new(*lock.ConfigError)) {
						t.Errorf("got %v, want a *lock.ConfigError", err)
					}
				})
			}
		})
	}
}

// otherTables have keys that cannot hold locks.
var otherTables = map[string]dynamodb.CreateTableInput{
	"another-name": {
		AttributeDefinitions: []types.AttributeDefinition{stringAttribute("id")},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	},
	"another-type": {
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("lock"), AttributeType: types.ScalarAttributeTypeN}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("lock"), KeyType: types.KeyTypeHash}},
	},
	"sort-key": {
		AttributeDefinitions: []types.AttributeDefinition{stringAttribute("lock"), stringAttribute("sort")},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("lock"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("sort"), KeyType: types.KeyTypeRange},
		},
	},
}

func stringAttribute(name string) types.AttributeDefinition {
	return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS}
}

// TestIgnoredConditions shows what would happen where a server ignores the
// conditions of writes: the store does not use it.
func TestIgnoredConditions(t *testing.T) { // F52
	p := onS3(servers.VersityGWNoMeta)(t)
	locker := newLocker(t, p.store(t, nil), lock.Options{Lease: lock.FixedLease(time.Minute)})
	_, err := locker.Acquire(t.Context(), lock.Key{Name: "ignored"})
	if !errors.As(err, new(*lock.ConfigError)) || !strings.Contains(err.Error(), "does not check the condition") {
		t.Errorf("got %v, want a *lock.ConfigError", err)
	}
}
