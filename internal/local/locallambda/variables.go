package locallambda

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// variables returns the environment of a process: the caller's, the variables
// that Lambda defines (see
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html) and
// those of the configuration.
func (p *Platform) variables(path, stream string) []string {
	// The caller's own must not show through, should it be a Lambda function.
	vars := slices.DeleteFunc(os.Environ(), func(pair string) bool {
		return strings.HasPrefix(pair, "AWS_LAMBDA_")
	})
	root, _ := filepath.Abs(filepath.Dir(path)) // fails only without a working directory
	initialization := "on-demand"
	if p.managed() {
		initialization = "lambda-managed-instances"
		vars = append(vars, "AWS_LAMBDA_MAX_CONCURRENCY="+strconv.Itoa(p.cfg.Concurrency))
	}
	vars = append(vars,
		"AWS_LAMBDA_FUNCTION_NAME="+p.cfg.Function,
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=128",
		"AWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/"+p.cfg.Function,
		"AWS_LAMBDA_LOG_STREAM_NAME="+stream,
		"AWS_LAMBDA_INITIALIZATION_TYPE="+initialization,
		"AWS_EXECUTION_ENV=AWS_Lambda_provided.al2023",
		"AWS_REGION="+p.region(),
		"AWS_DEFAULT_REGION="+p.region(),
		"LAMBDA_TASK_ROOT="+root,
		"_HANDLER="+filepath.Base(path),
		"TZ=:UTC",
	)
	return append(vars, p.cfg.Env...)
}

// given returns a variable of the configuration or else of the calling process.
func (p *Platform) given(name string) string {
	for _, pair := range slices.Backward(p.cfg.Env) {
		if value, found := strings.CutPrefix(pair, name+"="); found {
			return value
		}
	}
	return os.Getenv(name)
}

func (p *Platform) region() string {
	return cmp.Or(p.given("AWS_REGION"), p.given("AWS_DEFAULT_REGION"), "us-east-1")
}

func (p *Platform) functionARN() string {
	return "arn:aws:lambda:" + p.region() + ":123456789012:function:" + p.cfg.Function
}

// newLogStream returns a name as Lambda gives each new environment.
func newLogStream() string {
	return time.Now().UTC().Format("2006/01/02") + "/[$LATEST]" + randomHex(16)
}

// newRequestID returns a random UUID (version 4).
func newRequestID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// newTraceID returns an X-Ray tracing header that is not sampled.
func newTraceID() string {
	return fmt.Sprintf("Root=1-%08x-%s;Parent=%s;Sampled=0", time.Now().Unix(), randomHex(12), randomHex(8))
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b)
	return fmt.Sprintf("%x", b)
}
