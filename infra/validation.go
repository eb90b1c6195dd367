package infra

import "github.com/aws/constructs-go/constructs/v10"

// validation calls run when the CDK validates a node, which is after all
// aspects.
type validation struct{ run func() }

// onValidation has run called whenever the CDK validates node.
func onValidation(node constructs.IConstruct, run func()) {
	node.Node().AddValidation(&validation{run})
}

// Validate is called by the CDK. It returns no messages, because one would end
// the synthesis and hide what other checks find; run adds annotations instead.
func (v *validation) Validate() *[]*string {
	v.run()
	return &[]*string{}
}
