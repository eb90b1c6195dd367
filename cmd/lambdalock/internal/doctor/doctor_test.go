package doctor_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/redis/go-redis/v9"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/deployed"
	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/doctor"
	"github.com/lambdalock/lambdalock/infra/rules"
	"github.com/lambdalock/lambdalock/internal/local/fakedynamo"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// found returns the lines that are not OK, as "level check".
func found(all []doctor.Line) []string {
	var bad []string
	for _, l := range all {
		if l.Level != doctor.OK {
			bad = append(bad, string(l.Level)+" "+l.Check)
		}
	}
	return bad
}

// want fails unless exactly these are not OK, and each says who has to change
// something.
func want(t *testing.T, all []doctor.Line, bad ...string) {
	t.Helper()
	if got := found(all); !slices.Equal(got, bad) {
		t.Errorf("found %q, want %q: %+v", got, bad, all)
	}
	for _, l := range all {
		if l.Text == "" || (l.For == "") != (l.Level == doctor.OK) {
			t.Errorf("a line without its text, or with the wrong addressee: %+v", l)
		}
	}
}

// patient is a store whose requests fail, or take a while.
type patient struct {
	driver.Store
	driver.Inspector
	check, renew, acquire, read error
}

func (p *patient) Check(context.Context) error { return p.check }

func (p *patient) Renew(ctx context.Context, r *driver.Renewal) (driver.Row, bool, error) {
	if p.renew != nil {
		return driver.Row{}, false, p.renew
	}
	return p.Store.Renew(ctx, r)
}

func (p *patient) Acquire(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
	if p.acquire != nil {
		return driver.Row{}, false, p.acquire
	}
	return p.Store.Acquire(ctx, c)
}

func (p *patient) Read(ctx context.Context, name string) (driver.Row, error) {
	if p.read != nil {
		return driver.Row{}, p.read
	}
	return p.Inspector.Read(ctx, name)
}

func TestStore(t *testing.T) {
	t.Parallel()
	denied := &driver.Error{Lasting: true, Store: "table", Action: "dynamodb:UpdateItem", Answered: true, Unapplied: true}
	refused := &driver.Error{Lasting: true, Store: "table", Answered: true, Unapplied: true, Hint: "create it"}
	missing := &driver.Error{Lasting: true, Store: "table", Answered: true, Unapplied: true, Err: &smithy.GenericAPIError{Code: "ResourceNotFoundException"}}
	throttled := &driver.Error{Store: "table", Answered: true, Unapplied: true}
	silent := &driver.Error{Store: "table", Err: errors.New("connection refused")}
	for name, c := range map[string]struct {
		patient patient
		want    []string
		whom    string // who has to do something
		silent  bool
	}{
		"healthy":          {},
		"loses conditions": {patient: patient{check: &driver.ConfigError{Reason: "the server applies two writes"}}, want: []string{"error store"}, whom: "the store's owner"},
		"no answer":        {patient: patient{check: silent}, silent: true},
		"no answer later":  {patient: patient{renew: silent}, silent: true},
		"write denied":     {patient: patient{renew: denied}, want: []string{"warning write"}, whom: "who gives you permissions"},
		"may only read":    {patient: patient{acquire: denied}, want: []string{"warning write"}, whom: "who gives you permissions"},
		"check denied":     {patient: patient{check: denied, acquire: denied}, want: []string{"warning write"}, whom: "who gives you permissions"},
		"write refused":    {patient: patient{renew: refused}, want: []string{"error write"}, whom: "the store's owner"},
		"no table":         {patient: patient{renew: missing}, want: []string{"error write"}, whom: "who set the table's name"},
		"throttled":        {patient: patient{renew: throttled}, want: []string{"warning write"}, whom: "the store's owner"},
		"read denied":      {patient: patient{read: denied}, want: []string{"warning read"}, whom: "who gives you permissions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory := memstore.New()
			c.patient.Store, c.patient.Inspector = memory, memory
			lines, err := doctor.Store(t.Context(), &c.patient, "orders")
			if c.silent {
				if !errors.Is(err, silent) {
					t.Errorf("%+v, %v", lines, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want(t, lines, c.want...)
			for i, l := range lines {
				if l.Level != doctor.OK && l.For != c.whom || i > 0 && lines[i-1].Level == doctor.Error {
					t.Errorf("for %q, want %q, or of a store that keeps no locks: %+v", l.For, c.whom, l)
				}
			}
			for row := range memory.Rows(t.Context(), "") {
				if row.Token != "" || row.Name != "orders/lambdalock doctor" {
					t.Errorf("the doctor left the row %+v", row)
				}
			}
		})
	}
}

// table is a client whose table is right, unless change says otherwise.
type table struct {
	description types.TableDescription
	ttl         *types.TimeToLiveDescription
	denied      string
}

func (c *table) refusal(operation string) error {
	if c.denied != operation {
		return nil
	}
	return &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "User: somebody is not authorized to perform: dynamodb:" + operation + " on resource: it"}
}

func (c *table) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return &dynamodb.DescribeTableOutput{Table: &c.description}, c.refusal("DescribeTable")
}

func (c *table) DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return &dynamodb.DescribeTimeToLiveOutput{TimeToLiveDescription: c.ttl}, c.refusal("DescribeTimeToLive")
}

func (c *table) Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return &dynamodb.ScanOutput{}, c.refusal("Scan")
}

func rightTable() *table {
	return &table{
		description: types.TableDescription{
			TableName: aws.String("locks"), TableStatus: types.TableStatusActive,
			KeySchema:          []types.KeySchemaElement{{AttributeName: aws.String("lock"), KeyType: types.KeyTypeHash}},
			BillingModeSummary: &types.BillingModeSummary{BillingMode: types.BillingModePayPerRequest},
		},
		ttl: &types.TimeToLiveDescription{AttributeName: aws.String("deleteAfter"), TimeToLiveStatus: types.TimeToLiveStatusEnabled},
	}
}

// TestBilling: two writes are one event.
func TestBilling(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*types.TableDescription)
		want   []string
		says   string
	}{
		"on demand": {func(*types.TableDescription) {}, nil, "it is billed on demand"},
		"capped": {func(d *types.TableDescription) {
			d.OnDemandThroughput = &types.OnDemandThroughput{MaxWriteRequestUnits: aws.Int64(100)}
		}, nil, "at most 100 writes a second, which is 50 events"},
		"capacity": {func(d *types.TableDescription) {
			d.BillingModeSummary = nil
			d.ProvisionedThroughput = &types.ProvisionedThroughputDescription{WriteCapacityUnits: aws.Int64(6)}
		}, []string{"warning billing"}, "6 writes a second, which is 3 events"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := rightTable()
			c.change(&client.description)
			lines := doctor.Table(t.Context(), client, "locks")
			want(t, lines, c.want...)
			if i := slices.IndexFunc(lines, func(l doctor.Line) bool { return l.Check == "billing" }); i < 0 || !strings.Contains(lines[i].Text, c.says) {
				t.Errorf("%+v, want one that says %q", lines, c.says)
			}
		})
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	elsewhere := []types.ReplicaDescription{{RegionName: aws.String("us-east-1")}, {RegionName: aws.String("us-east-2")}}
	for name, c := range map[string]struct {
		change func(*table)
		want   []string
	}{
		"right":                    {func(*table) {}, nil},
		"updating":                 {func(c *table) { c.description.TableStatus = types.TableStatusUpdating }, nil},
		"creating":                 {func(c *table) { c.description.TableStatus = types.TableStatusCreating }, []string{"error table"}},
		"key is gone":              {func(c *table) { c.description.TableStatus = types.TableStatusInaccessibleEncryptionCredentials }, []string{"error table"}},
		"another key":              {func(c *table) { c.description.KeySchema[0].AttributeName = aws.String("id") }, []string{"error key"}},
		"TTL is off":               {func(c *table) { c.ttl.TimeToLiveStatus = types.TimeToLiveStatusDisabled }, []string{"warning ttl"}},
		"no TTL":                   {func(c *table) { c.ttl = nil }, []string{"warning ttl"}},
		"TTL starts":               {func(c *table) { c.ttl.TimeToLiveStatus = types.TimeToLiveStatusEnabling }, nil},
		"TTL ends":                 {func(c *table) { c.ttl.TimeToLiveStatus = types.TimeToLiveStatusDisabling }, []string{"warning ttl"}},
		"TTL on another attribute": {func(c *table) { c.ttl.AttributeName = aws.String("ttl") }, []string{"warning ttl"}},
		"replicas":                 {func(c *table) { c.description.Replicas = elsewhere }, []string{"error " + rules.Replication}},
		"strong replicas": {func(c *table) {
			c.description.Replicas, c.description.MultiRegionConsistency, c.ttl = elsewhere, types.MultiRegionConsistencyStrong, nil
		}, []string{"warning " + rules.StrongGlobalTable}},
		"DescribeTable is denied":      {func(c *table) { c.denied = "DescribeTable" }, []string{"warning unread"}},
		"DescribeTimeToLive is denied": {func(c *table) { c.denied = "DescribeTimeToLive" }, []string{"warning unread"}},
		"Scan is denied":               {func(c *table) { c.denied = "Scan" }, []string{"warning unread"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := rightTable()
			c.change(client)
			lines := doctor.Table(t.Context(), client, "locks")
			want(t, lines, c.want...)
			for _, l := range lines {
				if client.denied != "" && l.Level == doctor.Warning && (l.For != "who gives you permissions" || !strings.Contains(l.Text, "dynamodb:"+client.denied+" was denied")) {
					t.Errorf("%+v", l)
				}
			}
		})
	}
}

// TestClock: the time of DynamoDB is that of its answer.
func TestClock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ahead time.Duration // of the clock here
		want  []string
	}{
		"agrees": {0, nil},
		"behind": {-30 * time.Second, []string{"warning clock"}},
		"ahead":  {30 * time.Second, []string{"warning clock"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory := fakedynamo.New()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Date", time.Now().Add(-c.ahead).UTC().Format(http.TimeFormat))
				memory.ServeHTTP(w, r)
			}))
			t.Cleanup(server.Close)
			client := dynamodb.New(dynamodb.Options{
				Region: "eu-central-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
			})
			expect.Must(t, dynamostore.EnsureTable(t.Context(), client, "locks"))
			want(t, doctor.Table(t.Context(), client, "locks"), c.want...)
		})
	}
}

// info is a server with these settings.
type info string

func (i info) Info(ctx context.Context, _ ...string) *redis.StringCmd {
	cmd := redis.NewStringCmd(ctx)
	if i == "" {
		cmd.SetErr(errors.New("NOPERM"))
	}
	cmd.SetVal(string(i))
	return cmd
}

// ClusterInfo has the settings too. Without a size it is denied.
func (i info) ClusterInfo(ctx context.Context) *redis.StringCmd {
	if !strings.Contains(string(i), "cluster_size") {
		return info("").Info(ctx)
	}
	return i.Info(ctx)
}

func TestRedis(t *testing.T) {
	t.Parallel()
	const right = "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:1\r\nrole:master\r\nconnected_slaves:0\r\n"
	for name, c := range map[string]struct {
		info info
		want []string
	}{
		"right":       {right, nil},
		"never full":  {info(strings.Replace(right, "maxmemory:0", "maxmemory:1000", 1) + "maxmemory_policy:noeviction\r\n"), nil},
		"evicts":      {info(strings.Replace(right, "maxmemory:0", "maxmemory:1000", 1)), []string{"warning memory"}},
		"not kept":    {info(strings.Replace(right, "aof_enabled:1", "aof_enabled:0", 1)), []string{"warning persistence"}},
		"replicated":  {info(strings.Replace(right, "slaves:0", "slaves:2", 1)), []string{"warning replicas"}},
		"a replica":   {info(strings.Replace(right, "role:master", "role:slave", 1)), []string{"error replicas"}},
		"no cluster":  {right + "cluster_enabled:0\r\n", nil},
		"a node":      {right + "cluster_enabled:1\r\ncluster_size:3\r\n", []string{"error cluster"}},
		"some node":   {right + "cluster_enabled:1\r\n", []string{"error cluster"}},
		"all nodes":   {right + "cluster_enabled:1\r\ncluster_size:1\r\n", nil},
		"says little": {"redis_version:7.0.0\r\n", nil},
		"denied":      {"", []string{"warning unread"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want(t, doctor.Redis(t.Context(), c.info, "localhost:6379"), c.want...)
		})
	}
}

// TestRedisUnread: a server that has answered need not be started.
func TestRedisUnread(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	server.SetError("NOPERM User someone has no permissions to run the 'info' command")
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	defer func() { _ = client.Close() }()
	says := func(remedy string) {
		t.Helper()
		if found := doctor.Redis(t.Context(), client, "localhost:6379"); len(found) != 1 || !strings.HasSuffix(found[0].Text, ". "+remedy) {
			t.Errorf("%+v, want %q", found, remedy)
		}
	}
	says("Allow the user +info")
	server.Close()
	says("Start it, or correct its address")
}

func TestFunction(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		function deployed.Function
		want     []string
	}{
		"right":    {deployed.Function{Table: "locks"}, nil},
		"no table": {deployed.Function{}, []string{"warning place"}},
		"setting":  {deployed.Function{Table: "locks", Settings: rules.Function{LogLevel: "FATAL"}}, []string{"warning " + rules.LogLevel}},
		"mapping":  {deployed.Function{Table: "locks", Mappings: []rules.Mapping{{Kind: rules.SQS}}}, []string{"warning " + rules.PartialAnswer}},
		"second":   {deployed.Function{Table: "locks", Mappings: []rules.Mapping{{Kind: rules.SQS, ReportsFailures: true}, {Kind: rules.SQS}}}, []string{"warning " + rules.PartialAnswer}},
		"disabled": {deployed.Function{Table: "locks", Disabled: []string{"7f1b (uploads)"}}, []string{"warning mapping"}},
		"stopped":  {deployed.Function{Table: "locks", Stopped: true}, []string{"warning concurrency"}},
		"unread":   {deployed.Function{Table: "locks", Unread: []error{&driver.Error{Lasting: true, Action: "lambda:GetPolicy"}}}, []string{"warning unread"}},
		"its timeout counts": {deployed.Function{Table: "locks", Settings: rules.Function{Timeout: rules.Known(10)}, Mappings: []rules.Mapping{
			{Kind: rules.SQS, ReportsFailures: true, Queue: &rules.Queue{VisibilityTimeout: rules.Known(59), HasRedrivePolicy: true, MaxReceiveCount: rules.Known(5)}},
		}}, []string{"warning " + rules.VisibilityTimeout}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.function.Name = "thumbnails"
			want(t, doctor.Function(&c.function), c.want...)
		})
	}
}
