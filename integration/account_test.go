package integration_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

const (
	// ownTag is a tag of every table that the tests create. Its value is TABLE.
	ownTag = "lambdalock-integration"
	// leftAfter is the age from which a table or object of the tests is what a
	// killed run left: more than the -timeout in the Makefile.
	leftAfter = time.Hour
)

// awsAccount is an AWS account in which the tests run, instead of on local
// servers.
type awsAccount struct {
	table, bucket string         // TABLE and BUCKET of the Makefile; no bucket: no tests of S3
	own           *regexp.Regexp // the names of what the tests create
	cfg           aws.Config
	transport     *http.Transport
	dynamodb      *dynamodb.Client
	s3            *s3.Client
	tablesAt      *url.URL
	objectsAt     *url.URL // with the bucket
	bill          bill

	mu       sync.Mutex
	gateways []*gateway
}

// useAccount lets the tests run on an account. The error says what has to
// change before they can.
func useAccount(ctx context.Context, table, bucket string) (*awsAccount, error) {
	a, err := openAccount(ctx, table, bucket)
	if err != nil {
		return nil, err
	}
	go a.endOnSignal(ctx)
	if err := a.checkTables(ctx); err != nil {
		return nil, fmt.Errorf("DynamoDB in %s: %w", a.cfg.Region, err)
	}
	replies, err := a.ask(ctx, os.Getenv("LAMBDALOCK_LIMITED"))
	if err != nil {
		return nil, err
	}
	fmt.Println(page(a.cfg.Region, replies))
	start := func(tb testing.TB) servers.Server { return a.gateway("dynamodb").forTest(tb) }
	tableServers = []tableServer{{"AccountTable", start}}
	backends = []backend{{name: "AccountTable", killsShort: 25, contended: 600, faultedShort: 600, start: onTable(start)}}
	if bucket == "" {
		return a, nil
	}
	if err := a.checkBucket(ctx); err != nil {
		return nil, fmt.Errorf("BUCKET=%s, which has to be in %s: %w", bucket, a.cfg.Region, err)
	}
	backends = append(backends, backend{
		name: "AccountBucket", ownClock: true, lateEnd: coarseLease, killsShort: 25, contended: 600, faultedShort: 120, waiters: 4,
		start: func(tb testing.TB) place { return place{"s3", []string{a.gateway("s3").forTest(tb).Endpoint}} },
	})
	return a, nil
}

func openAccount(ctx context.Context, table, bucket string) (*awsAccount, error) {
	if !regexp.MustCompile(`^[A-Za-z0-9_.-]{3,100}$`).MatchString(table) {
		return nil, fmt.Errorf(`TABLE=%s: it has to be 3 to 100 letters, digits, "_", "-" and ".", because the names of the tests' tables begin with it`, table)
	}
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.MaxIdleConnsPerHost = 64 })
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(client))
	if err != nil {
		return nil, err
	}
	if cfg.Region == "" {
		return nil, errors.New("no AWS Region: set AWS_REGION, or region in the profile")
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return nil, fmt.Errorf("no AWS credentials: log in, or set AWS_PROFILE: %w", err)
	}
	return &awsAccount{
		table: table, bucket: bucket, own: regexp.MustCompile(`^` + regexp.QuoteMeta(table) + `-[A-Z2-7]{26}-`), cfg: cfg,
		transport: cfg.HTTPClient.(*awshttp.BuildableClient).GetTransport(), // it trusts AWS_CA_BUNDLE
		dynamodb:  dynamodb.NewFromConfig(cfg),
		s3:        s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true }),
	}, nil
}

// checkTables deletes the tables that killed runs left, and shows that the
// tests can create, use and delete theirs.
func (a *awsAccount) checkTables(ctx context.Context) error {
	pages := dynamodb.NewListTablesPaginator(a.dynamodb, &dynamodb.ListTablesInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		a.tablesAt = addressOf(page.ResultMetadata)
		for _, name := range page.TableNames {
			if name == a.table {
				return fmt.Errorf("TABLE=%s exists: choose a name that no table has, for the tests to append to", name)
			}
			if err := a.deleteLeft(ctx, name, time.Now().Add(-leftAfter)); err != nil {
				return err
			}
		}
	}
	g := a.gateway("dynamodb")
	err := dynamostore.EnsureTable(ctx, newClient(g.server.URL, a.transport), table)
	if err == nil {
		err = g.tryLock(ctx, "table")
	}
	return errors.Join(err, g.end(ctx))
}

// endOnSignal deletes what the tests created if the run is interrupted.
func (a *awsAccount) endOnSignal(ctx context.Context) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	fmt.Println(<-signals, "- deleting what the tests created")
	a.mu.Lock()
	defer a.mu.Unlock() // meanwhile no test begins
	for _, g := range a.gateways {
		if err := g.end(ctx); err != nil {
			fmt.Println(err)
		}
	}
	os.Exit(1)
}

// deleteLeft deletes a table if it has the name and the tag of those that the
// tests create, and was created before a time.
func (a *awsAccount) deleteLeft(ctx context.Context, name string, before time.Time) error {
	if !a.own.MatchString(name) {
		return nil
	}
	out, err := a.dynamodb.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	if err != nil || !aws.ToTime(out.Table.CreationDateTime).Before(before) {
		return unlessGone(err)
	}
	tags, err := a.dynamodb.ListTagsOfResource(ctx, &dynamodb.ListTagsOfResourceInput{ResourceArn: out.Table.TableArn})
	if err != nil || !slices.ContainsFunc(tags.Tags, func(t types.Tag) bool { return aws.ToString(t.Key) == ownTag && aws.ToString(t.Value) == a.table }) {
		return unlessGone(err)
	}
	fmt.Println("deleting", name, "of an earlier run")
	return a.deleteTable(ctx, name)
}

func (a *awsAccount) deleteTable(ctx context.Context, name string) error {
	_, err := a.dynamodb.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name}, func(o *dynamodb.Options) {
		// It is perhaps still being created, which takes seconds.
		often := retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = 30, 2*time.Second })
		o.Retryer = retry.AddWithErrorCodes(often, "ResourceInUseException")
	})
	return unlessGone(err)
}

// unlessGone returns the error unless it says that there is no such table:
// another run may have deleted it.
func unlessGone(err error) error {
	if errors.As(err, new(*types.ResourceNotFoundException)) {
		return nil
	}
	return err
}

// checkBucket deletes the objects that killed runs left, and shows that the
// tests can write, read and delete theirs.
func (a *awsAccount) checkBucket(ctx context.Context) error {
	out, err := a.s3.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &a.bucket})
	if err != nil {
		return err
	}
	a.objectsAt = addressOf(out.ResultMetadata)
	if err := a.deleteObjects(ctx, a.table+"-", time.Now().Add(-leftAfter)); err != nil {
		return err
	}
	g := a.gateway("s3")
	return errors.Join(g.tryLock(ctx, "s3"), g.end(ctx))
}

// deleteObjects deletes the objects of the tests whose keys have a prefix and
// that were written before a time, with all versions.
func (a *awsAccount) deleteObjects(ctx context.Context, prefix string, before time.Time) error {
	pages := s3.NewListObjectVersionsPaginator(a.s3, &s3.ListObjectVersionsInput{Bucket: &a.bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		var old s3types.Delete
		for _, v := range page.Versions {
			if a.own.MatchString(aws.ToString(v.Key)) && aws.ToTime(v.LastModified).Before(before) {
				old.Objects = append(old.Objects, s3types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
			}
		}
		if len(old.Objects) == 0 {
			continue
		}
		out, err := a.s3.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &a.bucket, Delete: &old})
		if err != nil {
			return err
		}
		for _, e := range out.Errors {
			return fmt.Errorf("%s was not deleted: %s: %s", aws.ToString(e.Key), aws.ToString(e.Code), aws.ToString(e.Message))
		}
	}
	return nil
}

// addressOf returns where the SDK sent a request.
func addressOf(m middleware.Metadata) *url.URL {
	return awsmiddleware.GetRawResponse(m).(*smithyhttp.Response).Request.URL
}

// tryLock locks a name once.
func (g *gateway) tryLock(ctx context.Context, kind string) error {
	w := newWire(0)
	store, closeStore, err := place{kind, []string{g.server.URL}}.open(w)
	if err != nil {
		return err
	}
	defer closeStore()
	l, err := lock.New(store, &lock.Options{Lease: lock.FixedLease(time.Minute), Logger: discard})
	if err != nil {
		return err
	}
	return l.Do(ctx, lock.Key{Name: "first"}, nothing)
}
