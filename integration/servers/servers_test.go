package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	goredis "github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

func TestDynoxide(t *testing.T)      { testConditionalUpdate(t, Dynoxide(t)) }
func TestDynamoDBLocal(t *testing.T) { testConditionalUpdate(t, DynamoDBLocal(t)) }
func TestMoto(t *testing.T)          { testConditionalUpdate(t, Moto(t)) }

// testConditionalUpdate runs a condition that passes on the missing row and is
// refused, with the row, once the row is there.
func testConditionalUpdate(t *testing.T, s Server) {
	db := dynamodb.New(dynamodb.Options{
		Region:       "eu-central-1",
		BaseEndpoint: aws.String(s.Endpoint),
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	createTable(t, db)
	if err := claim(t.Context(), db, "first"); err != nil {
		t.Fatalf("%s: first update: %v", s.Name, err)
	}
	err := claim(t.Context(), db, "second")
	var refused *types.ConditionalCheckFailedException
	if !errors.As(err, &refused) {
		t.Fatalf("%s: second update: got %v, want it refused by its condition", s.Name, err)
	}
	who, ok := refused.Item["who"].(*types.AttributeValueMemberS)
	if !ok || who.Value != "first" {
		t.Errorf("%s: refused update returned %v, want the row written first", s.Name, refused.Item)
	}
}

func TestRedis(t *testing.T)  { testKeyValue(t, Redis(t)) }
func TestValkey(t *testing.T) { testKeyValue(t, Valkey(t)) }

// testKeyValue also shows what happens to a server that is killed or paused.
func testKeyValue(t *testing.T, s Server) {
	options := expect.Value(goredis.ParseURL(s.Endpoint))(t)
	options.MaxRetries = -1
	client := goredis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	set := func() bool {
		t.Helper()
		done, err := client.SetNX(t.Context(), "a", "x", 0).Result()
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		return done
	}
	if first, second := set(), set(); !first || second {
		t.Errorf("%s: set if absent: %v and %v, want once", s.Name, first, second)
	}
	s.Kill()
	if err := client.Ping(t.Context()).Err(); err == nil {
		t.Errorf("%s answers although it was killed", s.Name)
	}
	expect.Must(t, s.Restart())
	if !set() {
		t.Errorf("%s kept on disk what it was not told to save", s.Name)
	}
	expect.Must(t, s.Pause())
	if answersPing(s.instance.address()) {
		t.Errorf("%s answers although it is paused", s.Name)
	}
	expect.Must(t, s.Resume())
	if set() {
		t.Errorf("%s forgot its keys in the pause", s.Name)
	}
}

func TestVersityGW(t *testing.T) {
	if err := putTwice(t, VersityGW(t)); err == nil {
		t.Error("the second write was not refused by its condition")
	}
}

// TestVersityGWNoMeta shows that there are servers whose locks would exclude
// nobody.
func TestVersityGWNoMeta(t *testing.T) {
	if err := putTwice(t, VersityGWNoMeta(t)); err != nil {
		t.Errorf("the second write was refused: %v", err)
	}
}

// putTwice writes an object twice, if it does not exist, and returns the error
// of the second write.
func putTwice(t *testing.T, s Server) error {
	client := s3.New(s3.Options{
		Region: Region, BaseEndpoint: aws.String(s.Endpoint), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(AccessKey, SecretKey, ""),
	})
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("locks")}); err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	put := func() error {
		_, err := client.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: aws.String("locks"), Key: aws.String("a"), Body: strings.NewReader("x"), IfNoneMatch: aws.String("*"),
		})
		return err
	}
	if err := put(); err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	return put()
}

func TestAzurite(t *testing.T) {
	s := Azurite(t)
	key := expect.Value(container.NewSharedKeyCredential(AzuriteAccount, AzuriteKey))(t)
	address := s.Endpoint + "/" + AzuriteAccount + "/locks"
	locks := expect.Value(container.NewClientWithSharedKeyCredential(address, key, nil))(t)
	if _, err := locks.Create(t.Context(), nil); err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	put := func() error {
		_, err := locks.NewBlockBlobClient("a").UploadBuffer(t.Context(), []byte("x"), &blockblob.UploadBufferOptions{
			AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)}},
		})
		return err
	}
	if err := put(); err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	if err := put(); !bloberror.HasCode(err, bloberror.BlobAlreadyExists) {
		t.Errorf("%s: second write: got %v, want it refused by its condition", s.Name, err)
	}
}

func TestOpen(t *testing.T) {
	if _, _, err := Open(t.Context(), "oracle"); err == nil || !strings.Contains(err.Error(), "azure, dynamodb-local, dynoxide, moto, redis, s3, valkey") {
		t.Errorf("got error %v, want one that lists the servers", err)
	}
	s := Redis(t) // skips the test if there is none
	s.Kill()
	s, closeServer, err := Open(t.Context(), "redis")
	if err != nil {
		t.Fatal(err)
	}
	data := s.instance.data
	closeServer()
	if !s.instance.proc.exited() || exists(data) {
		t.Errorf("after closing, the server has ended: %v, its folder is there: %v", s.instance.proc.exited(), exists(data))
	}
}

func createTable(t *testing.T, db *dynamodb.Client) {
	t.Helper()
	_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:   aws.String("locks"),
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash},
		},
	})
	if err != nil {
		t.Fatalf("create table: %v", err)
	}
}

func claim(ctx context.Context, db *dynamodb.Client, who string) error {
	_, err := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:           aws.String("locks"),
		Key:                 map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "a"}},
		UpdateExpression:    aws.String("SET who = :who"),
		ConditionExpression: aws.String("attribute_not_exists(who)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":who": &types.AttributeValueMemberS{Value: who},
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}

// TestFreePort: nobody who asks the system for any port gets that of a server
// before the server takes it.
func TestFreePort(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		port, err := freePort()
		if err != nil || seen[port] {
			t.Fatalf("port %s a second time, or error %v", port, err)
		}
		seen[port] = true
		if n, err := strconv.Atoi(port); err != nil || n < 1024 || n >= 32768 {
			t.Fatalf("port %s is one that systems give to anybody", port)
		}
	}
	next := fmt.Sprint(firstPort + (portsBegin+portsGiven.Load()+1)%ports)
	if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", next)); err == nil { // else somebody has it already
		defer l.Close()
	}
	if port, err := freePort(); err != nil || port == next {
		t.Errorf("port %s, which is taken, or error %v", port, err)
	}
}
