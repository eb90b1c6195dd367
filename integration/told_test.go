//go:build unix

package integration_test

import (
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	emulators  = []lane{emulator, managedEmulator}
	bothOurs   = []lane{ours, managedOurs}
	notInPlain = []lane{managedEmulator, ours, managedOurs} // the emulator takes these from its image
	managed    = []lane{managedEmulator, managedOurs}
)

// environmentVariables are what Lambda adds to the environment of a function,
// and who sets each.
var environmentVariables = map[string][]lane{
	"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": lanes,
	"AWS_LAMBDA_FUNCTION_NAME":        lanes,
	"AWS_LAMBDA_FUNCTION_VERSION":     lanes,
	"AWS_LAMBDA_LOG_GROUP_NAME":       lanes,
	"AWS_LAMBDA_LOG_STREAM_NAME":      lanes,
	"AWS_LAMBDA_RUNTIME_API":          lanes,
	"AWS_LAMBDA_MAX_CONCURRENCY":      managed,
	"AWS_DEFAULT_REGION":              notInPlain,
	"AWS_LAMBDA_INITIALIZATION_TYPE":  notInPlain,
	"AWS_REGION":                      notInPlain,
	"LAMBDA_TASK_ROOT":                notInPlain,
	"TZ":                              notInPlain,
	"_HANDLER":                        notInPlain,
	"AWS_EXECUTION_ENV":               bothOurs,
	"AWS_ACCESS_KEY_ID":               emulators, // empty; ours passes on what there is
	"AWS_SECRET_ACCESS_KEY":           emulators,
	"AWS_SESSION_TOKEN":               emulators,
	"AWS_LAMBDA_FUNCTION_TIMEOUT":     emulators, // it is a setting of theirs
	"AWS_LAMBDA_METADATA_API":         emulators,
	"AWS_LAMBDA_METADATA_TOKEN":       emulators,
	"AWS_ACCOUNT_ID":                  {managedEmulator},
	"AWS_LAMBDA_LOG_FORMAT":           {managedEmulator}, // the library takes none as text, as Lambda does
	"AWS_XRAY_CONTEXT_MISSING":        {managedEmulator},
	"AWS_XRAY_DAEMON_ADDRESS":         {managedEmulator},
	"_AWS_XRAY_DAEMON_ADDRESS":        {managedEmulator},
	"_AWS_XRAY_DAEMON_PORT":           {managedEmulator},
	"LAMBDA_RUNTIME_DIR":              {managedEmulator},
}

// headers are those of an event, and who sets each to what. Empty: anything.
var headers = map[string]struct {
	value string
	by    []lane
}{
	"Lambda-Runtime-Aws-Request-Id":       {by: lanes},
	"Lambda-Runtime-Deadline-Ms":          {by: lanes},
	"Lambda-Runtime-Invoked-Function-Arn": {by: lanes},
	"Lambda-Runtime-Aws-Tenant-Id":        {sentTenant, []lane{emulator, ours, managedOurs}},
	"Lambda-Runtime-Client-Context":       {sentClient, emulators},   // ours is not invoked by clients of AWS
	"Lambda-Runtime-Cognito-Identity":     {sentIdentity, emulators}, // nor for users of Cognito
	"Lambda-Runtime-Trace-Id":             {by: bothOurs},            // the emulators pass on that of the request
	"Lambda-Runtime-Invocation-Id":        {by: []lane{managedEmulator}},
}

// TestFunctionsAreToldTheSame shows what a function finds in its environment
// and with its events.
func TestFunctionsAreToldTheSame(t *testing.T) {
	onEachLane(t, func(t *testing.T, l lane) {
		s := newStage(t, l, "raw", longTimeout)
		before := time.Now().Add(longTimeout)
		s.invoke(order{Steps: []string{"invocation/ID/response {}"}})
		after := time.Now().Add(longTimeout)
		found := map[string]bool{}
		for _, pair := range s.await("begun").Environ {
			name, _, _ := strings.Cut(pair, "=")
			found[name] = true
		}
		checkVariables(t, l, found)
		header := http.Header(s.await("invoked").Header)
		checkHeader(t, l, header)
		// The clocks are the same, but one of them is read in milliseconds.
		ms, _ := strconv.ParseInt(header.Get("Lambda-Runtime-Deadline-Ms"), 10, 64)
		deadline := time.UnixMilli(ms)
		if early, late := before.Sub(deadline), deadline.Sub(after); early > 10*time.Millisecond || late > 10*time.Millisecond {
			t.Errorf("deadline %v before or %v after the timeout", early, late)
		}
	})
}

func checkVariables(t *testing.T, l lane, found map[string]bool) {
	t.Helper()
	for name, by := range environmentVariables {
		if _, inherited := os.LookupEnv(name); !inherited && found[name] != slices.Contains(by, l) {
			t.Errorf("%s is set: %v", name, found[name])
		}
	}
	for name := range found {
		_, inherited := os.LookupEnv(name)
		if _, listed := environmentVariables[name]; !listed && !inherited && strings.HasPrefix(strings.TrimPrefix(name, "_"), "AWS_") {
			t.Errorf("%s is set, and nobody knows of it", name)
		}
	}
}

func checkHeader(t *testing.T, l lane, header http.Header) {
	t.Helper()
	for name, want := range headers {
		value, found := header.Get(name), header[name] != nil
		if found != slices.Contains(want.by, l) || found && want.value != "" && value != want.value {
			t.Errorf("%s: %q", name, value)
		}
	}
	for name := range header {
		if _, listed := headers[name]; !listed && strings.HasPrefix(name, "Lambda-") {
			t.Errorf("%s: %q, and nobody knows of it", name, header.Get(name))
		}
	}
}

// runtimeSteps are what a runtime posts while it has an event, and the answers.
var runtimeSteps = []struct {
	step, want string
	differs    map[lane]string
}{
	{step: "nowhere {}", want: "404"},
	{step: "invocation/unknown/response {}", want: "400 InvalidRequestID"},
	{step: "invocation/unknown/error {}", want: "400 InvalidRequestID"},
	{step: "init/error {}", want: "403 InvalidStateTransition", differs: map[lane]string{managedEmulator: "202"}}, // its state is of all events together
	{step: "2020-01-01/extension/register {}", want: "403 Extension.RegistrationClosed"},
	{step: `2020-01-01/extension/register {"events":["SHUTDOWN"]}`, want: "403 Extension.InvalidEventType"},
	{step: "invocation/ID/error not JSON", want: "202"},
	{step: "invocation/ID/response {}", want: "403 InvalidStateTransition", differs: onceAnswered},
	{step: "invocation/ID/error {}", want: "403 InvalidStateTransition", differs: onceAnswered},
}

// onceAnswered: a managed instance knows only the events that it works on.
var onceAnswered = map[lane]string{managedEmulator: "400 InvalidRequestID", managedOurs: "400 InvalidRequestID"}

// TestRuntimesAreAnsweredTheSame shows what the Runtime API says to a runtime
// that does something wrong.
func TestRuntimesAreAnsweredTheSame(t *testing.T) {
	onEachLane(t, func(t *testing.T, l lane) {
		s := newStage(t, l, "raw", longTimeout)
		var o order
		for _, step := range runtimeSteps {
			o.Steps = append(o.Steps, step.step)
		}
		s.invoke(o)
		for _, step := range runtimeSteps {
			want, different := step.differs[l]
			if !different {
				want = step.want
			}
			if got := s.await(step.step).Answer; got != want {
				t.Errorf("%s -> %s, want %s", step.step, got, want)
			}
		}
	})
}

// TestLateAnswer shows that an answer after the deadline is refused by a
// managed instance, and that else no process is left to give it.
func TestLateAnswer(t *testing.T) {
	onEachLane(t, func(t *testing.T, l lane) {
		const late = "invocation/ID/response {}"
		s := newStage(t, l, "raw", endingTimeout)
		s.invoke(order{Steps: []string{"wait", late, "invocation/ID/error {}"}})
		if !l.managed() {
			s.awaitEnd()
			return
		}
		s.letGo()
		if got := s.await(late).Answer; got != "410 InvokeTimeout" {
			t.Errorf("a late answer: %s", got)
		}
		if got := s.await("invocation/ID/error {}").Answer; got != "400 InvalidRequestID" {
			t.Errorf("a late error after it: %s", got)
		}
	})
}

// TestToldOfItsEnd shows that SIGTERM comes only to who has registered an
// extension: when the environment ends, and else when the timeout ends the
// process.
func TestToldOfItsEnd(t *testing.T) {
	for begin, registered := range map[string]bool{"terminable": true, "notified": false} {
		t.Run(begin, func(t *testing.T) {
			onEachLane(t, func(t *testing.T, l lane) {
				s := newStage(t, l, begin, longTimeout)
				if got := s.invoke(order{Do: "return"}); got != `"done"` {
					t.Errorf("the invoker gets %q", got)
				}
				s.end()
				if got := s.awaitEnd(); got != registered {
					t.Errorf("SIGTERM at the end: %v", got)
				}
			})
		})
		t.Run(begin+", timeout", func(t *testing.T) {
			onEachLane(t, func(t *testing.T, l lane) {
				s := newStage(t, l, begin, endingTimeout)
				s.invoke(order{Do: "wait"})
				if l.managed() {
					return // no timeout ends its process
				}
				if got := s.awaitEnd(); got != registered {
					t.Errorf("SIGTERM at the timeout: %v", got)
				}
			})
		})
	}
}

// TestKilledEmulator shows that the emulator takes a function along whose
// handler still runs: [stage.close] checks it.
func TestKilledEmulator(t *testing.T) {
	for _, l := range emulators {
		t.Run(string(l), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, l, "", longTimeout)
			ended := make(chan string)
			go func() { ended <- s.invoke(order{Do: "wait"}) }()
			s.await("invoked")
			s.kill()
			<-ended
		})
	}
}
