package integration_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"slices"
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
)

const (
	ownTable      = "tests"
	strangerTable = ownTable + "-of-others"
)

// fakeAccount is an account of local servers, in which a stranger has a table
// and an object. It is what the environment says.
func fakeAccount(t *testing.T) *awsAccount {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": servers.Dynoxide(t).Endpoint, "AWS_ENDPOINT_URL_S3": onS3(servers.VersityGW)(t).Endpoints[0],
		"AWS_REGION": servers.Region, "AWS_ACCESS_KEY_ID": servers.AccessKey, "AWS_SECRET_ACCESS_KEY": servers.SecretKey,
		"AWS_DEFAULT_REGION": "", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_CONFIG_FILE": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	a := expect.Value(openAccount(t.Context(), ownTable, bucket))(t)
	t.Cleanup(a.transport.CloseIdleConnections)
	a.put(t, strangerTable, ownTag, "others")
	return a
}

// put creates a table with a tag, and an object below the same name.
func (a *awsAccount) put(t *testing.T, name, tag, value string) {
	t.Helper()
	createTable(t, a.dynamodb, name, "lock", types.Tag{Key: &tag, Value: &value})
	if _, err := a.s3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &a.bucket, Key: aws.String(name + "/1"), Body: bytes.NewReader(nil)}); err != nil {
		t.Fatal(err)
	}
}

// left returns the names of tables and objects.
func (a *awsAccount) left(t *testing.T) (tables, objects []string) {
	t.Helper()
	list := expect.Value(a.dynamodb.ListTables(t.Context(), &dynamodb.ListTablesInput{}))(t)
	contents := expect.Value(a.s3.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: &a.bucket}))(t)
	for _, v := range contents.Versions {
		objects = append(objects, aws.ToString(v.Key))
	}
	return list.TableNames, objects
}

// TestAccount runs a test on an account, which leaves nothing behind and
// touches nothing of others, and then with what cannot work, which runs none.
func TestAccount(t *testing.T) {
	const bill = "Requests to the account"
	a := fakeAccount(t)
	for name, c := range map[string]struct{ set, want string }{
		"a table and a bucket": {"", bill},
		"a bad name":           {"LAMBDALOCK_TABLE=a b", "TABLE=a b"},
		"no table":             {"LAMBDALOCK_TABLE=", "TABLE="},
		"a table that exists":  {"LAMBDALOCK_TABLE=" + strangerTable, "exists"},
		"no Region":            {"AWS_REGION=", "AWS_REGION"},
		"no credentials":       {"AWS_ACCESS_KEY_ID=", "AWS_PROFILE"},
		"no such bucket":       {"LAMBDALOCK_BUCKET=absent", "BUCKET=absent"},
		"wrong credentials":    {"AWS_SECRET_ACCESS_KEY=wrong", "BUCKET=" + bucket},
		"no answer":            {"AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:1", "DynamoDB in " + servers.Region},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestShortLease$", "-test.v")
			cmd.Env = append(os.Environ(), "LAMBDALOCK_TABLE="+ownTable, "LAMBDALOCK_BUCKET="+bucket, c.set)
			out, err := cmd.CombinedOutput()
			works := c.want == bill
			if asked := strings.Contains(string(out), "| a member that is refused returns |"); works && !asked {
				t.Error("no page with what only AWS can tell")
			}
			if text := string(out); !strings.Contains(text, c.want) || strings.Contains(text, "=== RUN") != works || (err == nil) != works {
				t.Errorf("%v, want %s:\n%s", err, c.want, out)
			}
			tables, objects := a.left(t)
			if !slices.Equal(tables, []string{strangerTable}) || !slices.Equal(objects, []string{strangerTable + "/1"}) {
				t.Errorf("left: %v, %v", tables, objects)
			}
		})
	}
}

// TestGateway shows that two tests have tables and objects of their own under
// one name, with the tag, and that no request reaches those of others.
func TestGateway(t *testing.T) {
	a := fakeAccount(t)
	expect.Must(t, errors.Join(a.checkTables(t.Context()), a.checkBucket(t.Context())))
	for range 2 {
		tables := a.gateway("dynamodb").forTest(t)
		newTable(t, tables)
		for _, p := range []place{{"table", []string{tables.Endpoint}}, {"s3", []string{a.gateway("s3").forTest(t).Endpoint}}} {
			if _, err := newLocker(t, p.store(t, nil), lock.Options{Lease: lock.FixedLease(time.Minute)}).Acquire(t.Context(), lock.Key{Name: "n"}); err != nil {
				t.Errorf("%s: %v", p.Kind, err)
			}
		}
	}
	tables, objects := a.left(t)
	for _, name := range slices.Concat(tables, objects) {
		if !a.own.MatchString(name) && !strings.HasPrefix(name, strangerTable) {
			t.Errorf("a test created %s", name)
		}
	}
	for _, name := range tables {
		expect.OK(t, a.deleteLeft(t.Context(), name, time.Now().Add(time.Minute)))
	}
	if tables, _ := a.left(t); !slices.Equal(tables, []string{strangerTable}) {
		t.Errorf("the tables of the tests have no tag: %v", tables)
	}
	w := newWire(0)
	t.Cleanup(w.next.CloseIdleConnections)
	_, err := newClient(a.gateway("dynamodb").forTest(t).Endpoint, w).BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{
		strangerTable: {{PutRequest: &types.PutRequest{Item: map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: "n"}}}}},
	}})
	_, errS3 := newS3(a.gateway("s3").forTest(t).Endpoint, w).DeleteBucket(t.Context(), &s3.DeleteBucketInput{Bucket: aws.String(bucket)})
	if err == nil || errS3 == nil {
		t.Errorf("requests for a stranger's table, and for the bucket: %v, %v", err, errS3)
	}
}

// TestLeftovers deletes what killed runs left, and nothing else.
func TestLeftovers(t *testing.T) {
	a := fakeAccount(t)
	own := ownTable + "-" + rand.Text() + "-"
	keep := []string{
		strangerTable,
		"x" + own + "locks", // begins with something else
		ownTable + "-" + rand.Text()[1:] + "-locks", // has no letters of a test
		own + "untagged", own + "of-another",
	}
	for _, name := range keep[1:3] {
		a.put(t, name, ownTag, ownTable)
	}
	a.put(t, own+"untagged", "name", ownTable)
	a.put(t, own+"of-another", ownTag, "tests2")
	a.put(t, own+"locks", ownTag, ownTable)
	sweep := func(before time.Time) {
		t.Helper()
		tables, _ := a.left(t)
		for _, name := range tables {
			expect.OK(t, a.deleteLeft(t.Context(), name, before))
		}
		expect.OK(t, a.deleteObjects(t.Context(), "", before))
	}
	sweep(time.Now().Add(-leftAfter))
	if tables, objects := a.left(t); len(tables) != len(keep)+1 || len(objects) != len(keep)+1 {
		t.Errorf("of a run that may still be at work: %v, %v", tables, objects)
	}
	sweep(time.Now().Add(time.Minute))
	tables, objects := a.left(t)
	slices.Sort(keep)
	if slices.Sort(tables); !slices.Equal(tables, keep) {
		t.Errorf("tables left: %v, want %v", tables, keep)
	}
	if want := 3; len(objects) != want {
		t.Errorf("objects left: %v, want the %d of others", objects, want)
	}
}
