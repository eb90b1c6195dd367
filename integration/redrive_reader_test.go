//go:build unix

package integration_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// TestRedriveWithoutReader: the messages that stay are visible although nobody
// reads what is printed.
func TestRedriveWithoutReader(t *testing.T) {
	command := buildCommand(t)
	r := newRedriveTest(t, command, "")
	const messages = 25
	for i := range messages {
		if _, err := r.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &r.dead, MessageBody: aws.String(fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = reader.Close()
	c := exec.CommandContext(t.Context(), command, "redrive", "--yes", "--to", r.source, r.dead)
	var said bytes.Buffer
	c.Stdout, c.Stderr, c.Env = writer, &said, r.environment()
	_ = c.Run() // it cannot print
	_ = writer.Close()
	out, err := r.client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &r.dead, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		t.Fatal(err)
	}
	if n := out.Attributes["ApproximateNumberOfMessages"]; n != fmt.Sprint(messages) || r.requests < 5 {
		t.Errorf("%s messages are visible after %d requests\n%s", n, r.requests, said.String())
	}
}
