package powertools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/internal/awserror"
	"github.com/lambdalock/lambdalock/internal/clock"
	"github.com/lambdalock/lambdalock/internal/event/invocation"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
)

const (
	inProgress = "INPROGRESS"
	completed  = "COMPLETED"

	// answerWithin is how long the table may take to answer, with all retries.
	answerWithin = 2 * time.Second
	// skew is by how much clocks may differ, see docs/PROMISES.md.
	skew = 2 * time.Second
)

type attributes = map[string]types.AttributeValue

// record is the old record of one event.
type record struct {
	id         string
	token      string        // in the attribute lambdalock, which Powertools overlooks; empty: no claim
	overtime   time.Duration // for the end of the claim, once the context has ended
	validation string
	completed  bool
	data       types.AttributeValue // the stored result; nil: none
}

// enter asks the old table whether the handler may run. It may if the answer is
// neither an error nor completed.
func (t *Table[E]) enter(ctx context.Context, event E) (*record, error) {
	now, r := clock.Wall(clock.From(ctx)), &record{}
	if !now.Before(t.CutOver.Add(t.Retention)) {
		return r, nil
	}
	if workIn(ctx).Repeats {
		return nil, &lock.ConfigError{Reason: "package powertools cannot be used in Latest and OnlyLatest, whose handler may have to run again for other events when the old table has its own event as completed: stop the old version, and leave the package out"}
	}
	var err error
	if r.id, err = t.ID(event); r.id == "" || err != nil {
		return r, err
	}
	if t.Validation != nil {
		part, err := parse("Validation", t.Validation(event))
		if err != nil {
			return nil, err
		}
		r.validation = t.digest(part)
	}
	if now.Before(t.CutOver) {
		return r, t.claim(ctx, r, now)
	}
	return r, t.read(ctx, r, now)
}

// read asks with one consistent read.
func (t *Table[E]) read(ctx context.Context, r *record, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	consistent := true
	out, err := t.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.Name, Key: t.key(r), ConsistentRead: &consistent})
	if err != nil {
		return t.failure(err, "dynamodb:GetItem")
	}
	if out.Item == nil {
		return nil
	}
	return t.judge(ctx, r, out.Item, now)
}

// judge decides about an event with a record.
func (t *Table[E]) judge(ctx context.Context, r *record, item attributes, now time.Time) error {
	expiration, end := t.get(item, "expiration"), t.get(item, "in_progress_expiration")
	status := text(t.get(item, "status"))
	lease, _ := lock.FromContext(ctx)
	switch {
	case number(expiration) < 0 || end != nil && number(end) < 0 || status != completed && status != inProgress:
		return t.failure(fmt.Errorf("the record %s has the status %q, or a time that is missing or wrong", r.id, status), "")
	case number(expiration) < now.Unix() || status == inProgress && end != nil && number(end) < now.Add(-skew).UnixMilli():
		return nil
	case t.Validation != nil && text(t.get(item, "validation")) != r.validation:
		return &lock.PayloadMismatchError{Key: lease.Key}
	case status == completed:
		r.completed, r.data = true, t.get(item, "data")
		return nil
	}
	until := time.Unix(number(expiration), 0)
	if end != nil {
		until = time.UnixMilli(number(end)).Add(skew)
	}
	return &lock.HeldError{Key: lease.Key, Holder: "Powertools table " + t.Name, Until: until, Duplicate: true}
}

// claim does what Powertools does: the record says that the event is in
// progress, until the handler must have ended. The condition is that of
// Powertools. It also holds for the claim itself, because a retry of the SDK
// may meet what the first attempt wrote.
func (t *Table[E]) claim(ctx context.Context, r *record, now time.Time) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = now.Add(invocation.LongestDeadline)
	}
	left := deadline.Sub(now)
	r.overtime = min(invocation.Reserve(workIn(ctx).Reserve, left), invocation.Reserve(0, left)) / 4
	end := endOfWork(ctx, deadline)
	r.token = clock.From(ctx).Text()
	set := attributes{
		"status": str(inProgress), "in_progress_expiration": num(end.UnixMilli()),
		"expiration": num(max(now.Add(t.Retention).Unix(), end.Unix())),
	}
	if t.Validation != nil {
		set["validation"] = str(r.validation)
	}
	err := t.update(ctx, r, set, "attribute_not_exists(#id) OR #expiration < :now OR #status = :status AND (#lambdalock = :token"+
		" OR attribute_exists(#in_progress_expiration) AND #in_progress_expiration < :before)", attributes{
		":now": num(now.Unix()), ":before": num(now.Add(-skew).UnixMilli()),
	})
	var refused *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &refused):
		r.token = "" // nothing to end
		return t.judge(ctx, r, refused.Item, now)
	case err != nil:
		e := t.failure(err, "dynamodb:UpdateItem")
		if e.Temporary { // it may have been written, and no answer came
			t.release(ctx, r)
			e.Requests++
		}
		return e
	}
	return nil
}

// workIn returns what the innermost lock tells about the work under it.
func workIn(ctx context.Context) (w invocation.Work) {
	l, _ := driver.FromContext(ctx)
	if held, ok := l.(invocation.Worker); ok {
		w = held.Work()
	}
	return w
}

// endOfWork returns when a handler whose context ends at the deadline has ended
// by every clock: not before Lambda's own deadline, because it may ignore its
// context, and not before its locks let another one begin.
func endOfWork(ctx context.Context, deadline time.Time) time.Time {
	if last := workIn(ctx).Deadline; last.After(deadline) {
		deadline = last
	}
	end := deadline.Add(skew)
	for _, lease := range lock.Leases(ctx) {
		if lease.Until.After(end) {
			end = lease.Until
		}
	}
	return end
}

// complete says in the old table that the event is completed. If it cannot,
// the event still is, because the lock's row says so.
func (t *Table[E]) complete(ctx context.Context, r *record, result any) {
	if r.token == "" {
		return
	}
	data, err := t.encode(result)
	if err == nil {
		expiration := clock.Wall(clock.From(ctx)).Add(t.Retention).Unix()
		err = t.end(ctx, r, attributes{"status": str(completed), "expiration": num(expiration), "data": data})
	}
	if err != nil {
		slog.ErrorContext(ctx, "lambdalock: an event is not completed in the Powertools table: if it comes again, the old version of the function may run",
			slog.String("id", r.id), slog.Any("error", err))
	}
	r.token = ""
}

// release ends a claim whose event is not completed, so that either version may
// run. If it cannot, the claim ends when the handler must have. It does nothing
// after complete.
func (t *Table[E]) release(ctx context.Context, r *record) {
	if r.token != "" {
		_ = t.end(ctx, r, attributes{"in_progress_expiration": num(0)})
	}
}

// end ends a claim, also after the context of the handler has ended. Then it
// has a part of the time that the lock keeps for itself. Most of that is left,
// or the process could end before the lock's row knows what has happened.
func (t *Table[E]) end(ctx context.Context, r *record, set attributes) error {
	within := answerWithin
	if deadline, ok := ctx.Deadline(); ok {
		within = max(deadline.Sub(clock.From(ctx).Now()), 0) + r.overtime
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	return t.update(ctx, r, set, "#lambdalock = :token", attributes{})
}

// update sends one conditional update.
func (t *Table[E]) update(ctx context.Context, r *record, set attributes, condition string, values attributes) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	expression, names := "SET #lambdalock = :token", map[string]string{}
	values[":token"] = str(r.token)
	for name, v := range set {
		expression += fmt.Sprintf(", #%s = :%s", name, name)
		values[":"+name] = v
	}
	for _, name := range placeholder.FindAllString(expression+condition, -1) {
		names[name] = t.attribute(name[1:])
	}
	_, err := t.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.Name, Key: t.key(r),
		UpdateExpression: &expression, ConditionExpression: &condition,
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}

var placeholder = regexp.MustCompile(`#\w+`)

// failure returns the error of a table that does not answer as it should.
func (t *Table[E]) failure(err error, action string) *lock.StoreError {
	e := &lock.StoreError{Op: "check", Store: "Powertools table " + t.Name, Err: err, Temporary: true, Requests: 1}
	var api smithy.APIError
	switch {
	case !errors.As(err, &api):
	case api.ErrorCode() == "AccessDeniedException":
		e.Action, e.Temporary = awserror.Denied(api.ErrorMessage(), action), false
		e.Hint = "allow it on the old table in the function's role"
	case api.ErrorCode() == "ValidationException" || api.ErrorCode() == "ResourceNotFoundException":
		e.Temporary = false
		e.Hint = "give powertools.Table the name, the keys and the attributes of the old table"
	}
	return e
}
