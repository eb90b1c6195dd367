// Command app is a complete CDK app: a bucket, and a function that handles each
// upload once and the uploads of one object one at a time, with the lock table,
// a queue for failed events, and alarms.
package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

func main() {
	defer jsii.Close()
	app := awscdk.NewApp(nil)
	newStack(app, "LambdalockApp", bootstrapDir(app))
	app.Synth(nil)
}

// bootstrapDir returns the folder of the built function.
func bootstrapDir(app awscdk.App) string {
	if dir, ok := app.Node().TryGetContext(jsii.String("bootstrapDir")).(string); ok {
		return dir
	}
	return "function/dist"
}
