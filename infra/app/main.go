// Command app is a complete CDK app around one function with a lock: a bucket
// whose uploads are handled once and one at a time for each object, the lock table,
// a queue for the events that failed, and alarms.
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

// bootstrapDir is the folder with the built function.
func bootstrapDir(app awscdk.App) string {
	if dir, ok := app.Node().TryGetContext(jsii.String("bootstrapDir")).(string); ok {
		return dir
	}
	return "function/dist"
}
