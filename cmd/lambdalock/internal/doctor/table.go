package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/console"
	"github.com/lambdalock/lambdalock/infra/rules"
	"github.com/lambdalock/lambdalock/internal/awserror"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
)

// TableClient is the part of a *dynamodb.Client that Table needs.
type TableClient interface {
	dynamodb.DescribeTableAPIClient
	dynamodb.ScanAPIClient
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
}

// Table checks the settings of a DynamoDB table.
func Table(ctx context.Context, client TableClient, table string) []Line {
	ctx, cancel := context.WithTimeout(ctx, 3*patience) // it sends three requests
	defer cancel()
	var found lines
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		found.unread("the settings of table "+table, "dynamodb:DescribeTable", err)
		return found
	}
	t := out.Table
	found.checkStatus(t)
	if err := dynamostore.CheckKey(t); err != nil {
		found.fail(checkKey, forStore, "%s", console.Plain(err))
	}
	strong := found.checkReplication(t)
	if !strong { // which has no TTL
		found.checkTTL(ctx, client, table)
	}
	found.checkBilling(t)
	found.checkClock(out.ResultMetadata)
	if _, err := client.Scan(ctx, &dynamodb.ScanInput{TableName: &table, Limit: aws.Int32(1)}); err != nil {
		found.unread("the rows of table "+table+" for list, watch and show --digest", "dynamodb:Scan", err)
	} else {
		found.ok(checkList, "you may list rows: list, watch and show --digest work")
	}
	return found
}

// unread adds a line for what could not be read.
func (l *lines) unread(what, action string, err error) {
	if api := smithy.APIError(nil); errors.As(err, &api) && api.ErrorCode() == "AccessDeniedException" {
		l.warn(checkUnread, forAccess, "%s cannot be read: %s was denied", what, awserror.Denied(api.ErrorMessage(), action))
		return
	}
	l.warn(checkUnread, forYou, "%s cannot be read: %v", what, err)
}

func (l *lines) checkStatus(t *types.TableDescription) {
	switch t.TableStatus {
	case types.TableStatusActive, types.TableStatusUpdating:
		l.ok(checkTable, "the table %s is %s", aws.ToString(t.TableName), t.TableStatus)
	case types.TableStatusInaccessibleEncryptionCredentials:
		l.fail(checkTable, forStore, "the table %s is %s: give DynamoDB the KMS key back", aws.ToString(t.TableName), t.TableStatus)
	default:
		l.fail(checkTable, forStore, "the table %s is %s, and takes no requests: wait, restore it, or create it with `lambdalock create-table`", aws.ToString(t.TableName), t.TableStatus)
	}
}

// checkReplication reports whether the table is strongly consistent in several
// Regions.
func (l *lines) checkReplication(t *types.TableDescription) (strong bool) {
	strong = t.MultiRegionConsistency == types.MultiRegionConsistencyStrong
	if len(t.Replicas) == 0 {
		l.ok(checkReplicas, "it is in one Region")
		return strong
	}
	r := rules.Replica{Name: "the replica in " + aws.ToString(t.Replicas[0].RegionName)}
	if strong {
		r = rules.Replica{Name: aws.ToString(t.TableName), Strong: true}
	}
	l.finding(r.Check(), forStore, "its functions lock in ")
	return strong
}

// finding adds a line for what a rule found.
func (l *lines) finding(f rules.Finding, whom, subject string) {
	level := Warning
	if f.Fatal {
		level = Error
	}
	l.add(level, f.ID, whom, "%s%s", subject, f.Text)
}

func (l *lines) checkTTL(ctx context.Context, client TableClient, table string) {
	const ttl = "deleteAfter"
	out, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	if err != nil {
		l.unread("the TTL of table "+table, "dynamodb:DescribeTimeToLive", err)
		return
	}
	d := out.TimeToLiveDescription
	switch {
	case d == nil || d.TimeToLiveStatus == types.TimeToLiveStatusDisabled || d.TimeToLiveStatus == types.TimeToLiveStatusDisabling:
		l.warn(checkTTL, forStore, "TTL is off, so rows that are no longer needed stay and cost money: enable it on the attribute %s (`lambdalock create-table %s` does)", ttl, table)
	case aws.ToString(d.AttributeName) != ttl:
		l.warn(checkTTL, forStore, "TTL is on the attribute %q, so rows that are no longer needed stay and cost money: disable it, and enable it on %s", aws.ToString(d.AttributeName), ttl)
	default:
		l.ok(checkTTL, "TTL deletes rows that are no longer needed, by %s", ttl)
	}
}

// checkBilling says how many events the table takes.
func (l *lines) checkBilling(t *types.TableDescription) {
	if t.BillingModeSummary != nil && t.BillingModeSummary.BillingMode == types.BillingModePayPerRequest {
		if o := t.OnDemandThroughput; o != nil && aws.ToInt64(o.MaxWriteRequestUnits) > 0 {
			l.ok(checkBilling, "it is billed on demand, for at most %d writes a second, which is %d events", *o.MaxWriteRequestUnits, *o.MaxWriteRequestUnits/2)
			return
		}
		l.ok(checkBilling, "it is billed on demand")
		return
	}
	if p := t.ProvisionedThroughput; p != nil && aws.ToInt64(p.WriteCapacityUnits) > 0 {
		l.warn(checkBilling, forStore, "its capacity is %d writes a second, which is %d events: beyond that, claims are throttled and their events come again later. "+
			"Set its billing to on demand", *p.WriteCapacityUnits, *p.WriteCapacityUnits/2)
	}
}

// checkClock compares this machine's clock with DynamoDB's answer, whose Date
// has whole seconds. Locks bear a difference of lock.DefaultGrace.
func (l *lines) checkClock(m middleware.Metadata) {
	server, ok := awsmiddleware.GetServerTime(m)
	here, answered := awsmiddleware.GetResponseAt(m)
	if !ok || !answered {
		return
	}
	// The server wrote a time between Date and a second later, and the answer took
	// a while.
	ahead := here.Sub(server)
	switch most := lock.DefaultGrace + time.Second; {
	case ahead > most+slow, ahead < -lock.DefaultGrace:
		l.warn(checkClock, forYou, "the clock of this machine and DynamoDB's differ by about %v, and locks bear %v: "+
			"synchronise this one (NTP) before you use exec, or believe what show says of a lease", ahead.Abs().Round(time.Second), lock.DefaultGrace)
	default:
		l.ok(checkClock, "the clock of this machine and DynamoDB's agree")
	}
}
