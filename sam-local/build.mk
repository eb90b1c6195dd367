# sam build makes the target build-<logical id> for each function, and sets
# ARTIFACTS_DIR. The Makefile that includes this file sets GOARCH.

GO ?= go
# sam build runs make in a copy of the Makefile's folder, so paths must not depend on
# the working directory.
here := $(dir $(realpath $(lastword $(MAKEFILE_LIST))))

# A program's folder is its function's logical id in lower case.
build-%:
	cd "$(here)../examples" && CGO_ENABLED=0 GOOS=linux GOARCH=$(GOARCH) $(GO) build -tags lambda.norpc \
		-trimpath -ldflags "-s -w" -o "$(ARTIFACTS_DIR)/bootstrap" "./$$(echo $* | tr A-Z a-z)"
