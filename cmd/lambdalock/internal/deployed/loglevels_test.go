package deployed

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/lambdalock/lambdalock/internal/defaultlog"
)

// TestEveryLogLevel notices a level or a format that Lambda has and we do not
// know.
func TestEveryLogLevel(t *testing.T) {
	t.Parallel()
	levels := types.ApplicationLogLevel("").Values()
	for _, level := range levels {
		if _, ok := defaultlog.Levels[string(level)]; !ok {
			t.Errorf("level %s is unknown", level)
		}
	}
	if len(levels) != len(defaultlog.Levels) {
		t.Errorf("Lambda has the levels %v, we know %v", levels, defaultlog.Levels)
	}
	for _, format := range types.LogFormat("").Values() {
		if format != types.LogFormatJson && format != types.LogFormatText {
			t.Errorf("format %s is unknown", format)
		}
	}
	if types.LogFormatJson != "JSON" {
		t.Errorf("the format is called %s", types.LogFormatJson)
	}
}
