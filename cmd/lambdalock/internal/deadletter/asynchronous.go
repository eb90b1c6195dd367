package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// largestEvent is how many bytes an asynchronous invocation takes.
// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
const largestEvent = 1 << 20

// Functions is Lambda, as far as the events of asynchronous invocations need
// it.
type Functions struct {
	Client InvokeClient
	// ARN of the function whose events are redriven, with its alias or version if
	// one was named. Empty: of none, because the namespace of the locks is that of
	// one function, and another may have the same keys.
	ARN string
	// DeadLetterQueue is the ARN of that function's.
	DeadLetterQueue string
}

// InvokeClient is what Functions needs of a *lambda.Client.
type InvokeClient interface {
	Invoke(context.Context, *lambda.InvokeInput, ...func(*lambda.Options)) (*lambda.InvokeOutput, error)
}

// invocation is an asynchronous invocation that failed.
type invocation struct {
	function string // its ARN, with its alias or version; empty: unknown
	id       string // of the request
	event    []byte
}

// functionARN has the function, and its alias or version.
var functionARN = regexp.MustCompile(`^(arn:[a-z-]+:lambda:[a-z0-9-]+:[0-9]+:function:[A-Za-z0-9_-]+)(?::(\$LATEST|[A-Za-z0-9_-]+))?$`)

// invocationOf returns the invocation that a message of a function's
// dead-letter queue or failure destination tells of, or nil.
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
func invocationOf(m *types.Message) *invocation {
	body := []byte(aws.ToString(m.Body))
	if id, ok := m.MessageAttributes["RequestID"]; ok && has(m, "ErrorCode") {
		return &invocation{id: aws.ToString(id.StringValue), event: body}
	}
	r := recordOf(body)
	if r == nil || r.event == nil || r.context.Condition == succeeded || !functionARN.MatchString(r.context.FunctionARN) {
		return nil
	}
	return &invocation{function: r.context.FunctionARN, id: r.context.RequestID, event: r.event}
}

// record is what a destination gets.
type record struct {
	context struct{ RequestID, FunctionARN, Condition string }
	event   json.RawMessage // nil: it has none, or null
	stream  bool
}

const succeeded = "Success"

// recordOf returns the record in the body of a message, or nil. The event keeps
// its bytes.
func recordOf(body []byte) *record {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil || members["requestContext"] == nil {
		return nil
	}
	r := &record{event: members["requestPayload"]}
	r.stream = members["KinesisBatchInfo"] != nil || members["DDBStreamBatchInfo"] != nil
	if json.Unmarshal(members["requestContext"], &r.context) != nil {
		return nil
	}
	return r
}

func has(m *types.Message, name string) bool {
	_, ok := m.MessageAttributes[name]
	return ok
}

// nowhere says why a message stays that came from no queue, and is not an
// invocation either.
func (m *Message) nowhere() string {
	switch r := recordOf([]byte(aws.ToString(m.sqs.Body))); {
	case r != nil && r.stream:
		// https://docs.aws.amazon.com/lambda/latest/dg/kinesis-on-failure-destination.html
		return "it says which records of a stream failed, and has none of them: read them from the stream by their sequence numbers, before it drops them"
	case r != nil && r.context.Condition == succeeded:
		return "it tells of an asynchronous invocation that succeeded: this is a destination for successes"
	}
	return "it does not say which queue it came from, and is not an asynchronous invocation that failed: give --to"
}

// foreign says why a message is none of the function's, or "".
func (f *Functions) foreign(m *Message) string {
	switch {
	case m.failed == nil:
		return ""
	case f.ARN == "" && m.failed.function == "":
		return "it is the event of an asynchronous invocation that failed: give the --function whose dead-letter queue this is"
	case f.ARN == "":
		return "it is an asynchronous invocation that failed: give --function " + m.failed.function
	case m.failed.function == "" && f.DeadLetterQueue == m.Queue:
		return ""
	case m.failed.function == "":
		return fmt.Sprintf("it is the event of an asynchronous invocation that failed, and the dead-letter queue of %s is another one: %s", short(f.ARN), orNone(f.DeadLetterQueue))
	}
	asked, from := functionARN.FindStringSubmatch(f.ARN), functionARN.FindStringSubmatch(m.failed.function)
	if asked == nil || asked[1] != from[1] || asked[2] != "" && asked[2] != from[2] {
		return fmt.Sprintf("it is an asynchronous invocation of %s, and --function names %s", m.failed.function, short(f.ARN))
	}
	return ""
}

func orNone(queue string) string {
	if queue == "" {
		return "it has none"
	}
	return queue
}

// short returns the name in the ARN of a function, with its alias or version.
func short(arn string) string {
	_, name, _ := strings.Cut(arn, ":function:")
	return name
}

// target returns the ARN of the function that is to get the event again, or why
// none is. A message that names its function names the alias, too.
func (f *Functions) target(m *Message) (arn, why string) {
	switch e := m.failed; {
	case len(e.event) > largestEvent:
		return "", fmt.Sprintf("its event has %d bytes, and an asynchronous invocation takes at most %d", len(e.event), largestEvent)
	case !json.Valid(e.event):
		return "", "its event is not JSON"
	case e.function == "":
		return f.ARN, ""
	default:
		return e.function, ""
	}
}

// invoke invokes a function asynchronously. It returns the id of the request,
// which the message has that Lambda sends if all attempts fail.
func (f *Functions) invoke(ctx context.Context, arn string, event []byte) (id string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	out, err := f.Client.Invoke(ctx, &lambda.InvokeInput{FunctionName: &arn, InvocationType: lambdatypes.InvocationTypeEvent, Payload: event})
	if err != nil {
		return "", &ServiceError{Of: "function " + short(arn), Err: err, Unclear: !refused(err)}
	}
	if out.StatusCode != http.StatusAccepted {
		return "", &ServiceError{Of: "function " + short(arn), Err: errors.New("it is not known whether Lambda took the event"), Unclear: true}
	}
	id, _ = awsmiddleware.GetRequestIDMetadata(out.ResultMetadata)
	return id, nil
}
