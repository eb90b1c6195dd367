package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lambdalock/lambdalock/internal/local/locallambda"
)

const (
	uploadKey    = "holiday 2026/a+b&c é.jpg" // as it is decoded from s3upload/event.json
	uploadResult = "results/" + uploadKey + ".json"
)

var uploadBody = bytes.Repeat([]byte("picture "), 128)

func putUpload(ctx context.Context, w *world) error {
	_, err := w.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(pictures), Key: aws.String(uploadKey), Body: bytes.NewReader(uploadBody)})
	return err
}

func verifyUpload(ctx context.Context, st *stage) error {
	o, err := st.world.s3.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(pictures), Key: aws.String(uploadResult)})
	if err != nil {
		return err
	}
	defer o.Body.Close()
	var got struct {
		Size   int
		SHA256 string
	}
	if err := json.NewDecoder(o.Body).Decode(&got); err != nil {
		return err
	}
	sum := sha256.Sum256(uploadBody)
	if got.Size != len(uploadBody) || got.SHA256 != hex.EncodeToString(sum[:]) {
		return fmt.Errorf("the result is %+v", got)
	}
	return nil
}

// twoSubscribers runs the example as two functions on one lock table.
func twoSubscribers(ctx context.Context, st *stage) error {
	for _, name := range []string{"billing", "mailer"} {
		p, err := st.start(ctx, name)
		if err != nil {
			return err
		}
		for range 2 {
			if all := p.Deliver(ctx, st.event, locallambda.Async{Scale: scale}); len(all) != 1 || label(all[0]) != done {
				st.surprise("subscriber %s: %s", name, summary(all))
			}
		}
	}
	st.say("two subscribers, twice each:")
	st.effects([]string{"17 billing", "17 mailer"})
	return nil
}

func noOverlap(begin, end string) func(context.Context, *stage) error {
	return func(_ context.Context, st *stage) error {
		st.end()
		return st.world.journal.overlapping(begin, end)
	}
}

// number is a number of an item in DynamoDB.
func (w *world) number(table, key, attribute string) string {
	v, _ := w.dynamo.Item(table, key)[attribute].(map[string]any)
	n, _ := v["N"].(string)
	return n
}

// archived is the fence that an archived statement bears.
func (w *world) archived(ctx context.Context, statement string) (string, error) {
	o, err := w.s3.HeadObject(ctx, &s3.HeadObjectInput{Bucket: aws.String(archive), Key: aws.String("accounts/DE-4711/" + statement + ".json")})
	if err != nil {
		return "", err
	}
	return o.Metadata["fence"], nil
}

// verifyAccount checks that the account is that of the one statement, in both places.
func verifyAccount(statement, balance string) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		fence, err := st.world.archived(ctx, statement)
		if err != nil {
			return err
		}
		if got := st.world.number(accounts, "DE-4711", "fence"); got != fence || fence == "" {
			return fmt.Errorf("the account has fence %q, the archive %q", got, fence)
		}
		if got := st.world.number(accounts, "DE-4711", "balance"); got != balance {
			return fmt.Errorf("the balance is %q, want %q", got, balance)
		}
		return nil
	}
}

// lateWriter holds back the write of an owner until its lease is over and a later
// owner has written.
func lateWriter(ctx context.Context, st *stage) error {
	held := false
	st.world.gate.close(func(u update) bool {
		first := u.TableName == accounts && !held
		held = held || first
		return first
	})
	var late []locallambda.Result
	over := make(chan struct{})
	st.wg.Go(func() {
		defer close(over)
		late = st.platform.Deliver(ctx, st.event, locallambda.Async{Scale: scale})
	})
	if err := st.world.gate.await(ctx, 1, over); err != nil {
		return err
	}
	if err := st.endLease(ctx); err != nil {
		return err
	}
	other, err := swap("c2f4a7de", "d3f5b8ef", "1042.50", "990", `"statement": 17`, `"statement": 18`)(st.event)
	if err != nil {
		return err
	}
	r, err := st.invoke(ctx, other)
	if err != nil {
		return err
	}
	st.expect("the later owner", r, done)
	if got := st.world.number(accounts, "DE-4711", "balance"); got != "990" {
		st.surprise("the balance is %q before the late write, want that of the later owner", got)
	}
	st.world.gate.open()
	<-over
	st.say("a late writer, after a later owner has written: %s", summary(late))
	if len(late) != 2 || !strings.Contains(late[0].ErrorMessage, "a later owner has written") || label(late[1]) != done {
		st.surprise("the late writer: %s, want one refused write and a retry that is skipped", summary(late))
	}
	st.effects([]string{"/" + archive + "/accounts/DE-4711/18.json"})
	return verifyAccount("18", "990")(ctx, st)
}

// endLease lets the lease of the only lock be over.
func (st *stage) endLease(ctx context.Context) error {
	row := ""
	err := st.world.journal.await(ctx, func(es []entry) bool {
		for _, e := range es {
			if e.dynamo.acquires() && e.status == http.StatusOK {
				row = e.dynamo.row()
			}
		}
		return row != ""
	})
	if err != nil {
		return err
	}
	_, err = st.world.tables.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(locks), Key: map[string]types.AttributeValue{"lock": &types.AttributeValueMemberS{Value: row}},
		UpdateExpression:          aws.String("SET expires = :past"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":past": &types.AttributeValueMemberS{Value: "2026-01-01T00:00:00.000000Z"}},
	})
	return err
}

// client reads a streamed response: its first piece at once, the rest when it may.
type client struct {
	body  bytes.Buffer
	first chan struct{} // closed when the first piece is there
	goOn  chan struct{}
	once  sync.Once
}

func newClient() *client { return &client{first: make(chan struct{}), goOn: make(chan struct{})} }

func (c *client) Write(piece []byte) (int, error) {
	c.once.Do(func() {
		close(c.first)
		<-c.goOn
	})
	return c.body.Write(piece)
}

// manyRows make a body that does not fit into the buffers of a connection.
const manyRows = 1_000_000

// slowClient asks for another export while the first one has been read in part.
func slowClient(ctx context.Context, st *stage) error {
	event, err := edit(st.event, `"rows": "1000"`, fmt.Sprintf(`"rows": "%d"`, manyRows))
	if err != nil {
		return err
	}
	slow, over := newClient(), make(chan struct{})
	var first locallambda.Result
	st.wg.Go(func() {
		defer close(over)
		first, err = st.platform.Invoke(ctx, locallambda.Invocation{Payload: event, Stream: slow})
	})
	select {
	case <-slow.first:
	case <-over:
		return errors.Join(errors.New("it did not stream"), err)
	}
	other, otherErr := st.invoke(ctx, st.event)
	close(slow.goOn)
	<-over
	if err := errors.Join(err, otherErr); err != nil {
		return err
	}
	st.expect("while it is read", other, "status 409")
	st.expect("the slow client", first, "status 200")
	lines := strings.Count(slow.body.String(), "\n")
	if want := fmt.Sprintf("\n%d,", manyRows); lines != manyRows+1 || !strings.Contains(slow.body.String(), want) {
		st.surprise("the body has %d lines, want %d", lines, manyRows+1)
	}
	later, err := st.invoke(ctx, st.event)
	if err != nil {
		return err
	}
	st.expect("later", later, "status 200")
	st.say("a slow client: meanwhile %s; it gets %d lines; later: %s", label(other), lines, label(later))
	return st.example.verify(ctx, st)
}
