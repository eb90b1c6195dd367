# What sam build calls for each function: build-<logical id>, with ARTIFACTS_DIR.
# The Makefile that includes this says GOARCH.

GO ?= go
# sam build runs make in a copy of the Makefile's folder, so nothing may hang on the
# working directory.
here := $(dir $(realpath $(lastword $(MAKEFILE_LIST))))

# The folder of a program is its function's logical id in lower case.
build-%:
	cd "$(here)../examples" && CGO_ENABLED=0 GOOS=linux GOARCH=$(GOARCH) $(GO) build -tags lambda.norpc \
		-trimpath -ldflags "-s -w" -o "$(ARTIFACTS_DIR)/bootstrap" "./$$(echo $* | tr A-Z a-z)"
