package middleware_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/rings"
)

// TestRings: how a handler is called under its lock knows nothing of HTTP and
// of batches, neither of these knows the other, and none of them knows by which
// door a handler came in.
func TestRings(t *testing.T) {
	t.Parallel()
	core := []string{
		"answer.go", "defaultstore.go", "doc.go", "environment.go", "funchandler.go", "handlerrun.go", "interrupted.go", "keys.go", "metrics.go", "observe.go",
		"permanent.go", "policy.go", "rawhandler.go", "remember.go", "settings.go", "signature.go", "stream.go", "wrapper.go",
	}
	web := []string{"caller.go", "cookie.go", "http.go", "problem.go", "reply.go", "result.go"}
	batches := []string{"around.go", "batch.go", "batcherror.go", "failed.go", "overdue.go", "record.go", "schedule.go", "source.go", "task.go"}
	doors := []string{
		"body.go", "fit.go", "latest.go", "options.go", "recordoptions.go", "records.go", "s3records.go", "streamrecords.go",
		"withlimit.go", "withlock.go", "withlocks.go",
	}
	rings.Check(t, core, web, batches, doors)
	rings.Check(t, core, batches, web, doors)

	ofHTTP := regexp.MustCompile(`http\.\w+|eventkind\.\w*(Gateway|Request|Payload|LoadBalancer|Method)\w*|events\.(API|ALB|LambdaFunctionURL)\w*`)
	for _, file := range append(core, batches...) {
		text := expect.Value(os.ReadFile(file))(t)
		if name := ofHTTP.Find(text); name != nil {
			t.Errorf("%s names %s, which only the files about HTTP and the doors know", file, name)
		}
	}
}
