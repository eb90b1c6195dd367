package integration_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// synthesised is what the CDK makes of a deployment, and the construct says.
type synthesised struct {
	Warnings []string
	Template map[string]any
}

// unlike has the deployments of which the construct and doctor say different
// things: what only doctor says, and why.
var unlike = map[string]struct{ finds, because string }{
	"right/stopped":         {"concurrency", "a template that stops a function means it, and who asks doctor does not know"},
	"right/disabled stream": {"mapping", "a template that disables a mapping means it, and who asks doctor does not know"},
}

// TestDeployed deploys the templates of infra to moto, each to an account of
// its own.
func TestDeployed(t *testing.T) {
	t.Parallel()
	moto, command := servers.MotoStacks(t), buildCommand(t)
	t.Run("templates", func(t *testing.T) { workWithTemplates(t, moto, command) })
	t.Run("deployments", func(t *testing.T) { compareDeployments(t, moto, command) })
}

// compareDeployments deploys what infra has synthesised: what the construct
// warns of in a template, doctor finds in what stands there.
//
// Only the construct knows the role of a function, the removal policy of a
// table, and alarms; only doctor what has been deleted or changed since, such
// as a dead-letter queue, and the versions of an alias. moto has one policy and
// one configuration for a function and its aliases; package deployed tests
// those of an alias.
func compareDeployments(t *testing.T, moto servers.Server, command string) {
	var all struct {
		Connected   synthesised
		Deployments map[string]synthesised
	}
	expect.Must(t, json.Unmarshal(expect.Value(os.ReadFile("../infra/testdata/deployments.json"))(t), &all))
	if len(all.Deployments) < 30 {
		t.Fatalf("%d deployments", len(all.Deployments))
	}
	for i, name := range slices.Sorted(maps.Keys(all.Deployments)) {
		d, account := all.Deployments[name], fmt.Sprint(300000000000+i)
		own := d.Template["Resources"].(map[string]any)
		for id, r := range all.Connected.Template["Resources"].(map[string]any) {
			if own[id] == nil {
				own[id] = r
			}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStacks(t, moto.Endpoint, account)
			s.makeElsewhere()
			template := expect.Value(json.Marshal(d.Template))(t)
			names := s.deploy("Test", strings.ReplaceAll(string(template), "111111111111", account), nil)
			got, _ := examine(t, command, s.endpoint, "--acknowledge", "latency", "--function", names["Fn9270CBC0"])
			want := []string{}
			for _, id := range append(d.Warnings, unlike[name].finds) {
				if id != "" {
					want = append(want, "warning "+id)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("doctor finds %q, and the construct warns of %q", got, want)
			}
		})
	}
}

// makeElsewhere makes what deployments name and have not in their stack.
func (s *stacks) makeElsewhere() {
	s.t.Helper()
	cfg := s.config()
	a := &account{s.t, lambda.NewFromConfig(cfg), sqs.NewFromConfig(cfg), kinesis.NewFromConfig(cfg), nil, ""}
	dead := a.queue("failed", map[string]string{"MessageRetentionPeriod": "1209600"})
	a.queue("failed", map[string]string{"FifoQueue": "true"})
	a.queue("orders", map[string]string{"VisibilityTimeout": "60", "RedrivePolicy": `{"deadLetterTargetArn":"` + dead + `","maxReceiveCount":5}`})
	expect.Value(a.kinesis.CreateStream(s.t.Context(), &kinesis.CreateStreamInput{StreamName: aws.String("orders"), ShardCount: aws.Int32(1)}))(s.t)
}
