package servers

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
)

const (
	azuritePackage = "azurite"
	azuriteVersion = "3.35.0"
)

// AzuriteAccount and AzuriteKey are what [Azurite] accepts. They are the same
// in every Azurite: see
// https://learn.microsoft.com/azure/storage/common/storage-connect-azurite.
const (
	AzuriteAccount = "devstoreaccount1"
	AzuriteKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

var azurite = product{
	name:    "Azurite",
	version: azuriteVersion,
	folder:  "azurite-" + azuriteVersion,
	check:   func() error { return haveTool("node", "install Node.js, or put node on the PATH") },
	fetch:   fetchAzurite,
	command: func(dir, port, data string) *exec.Cmd {
		script := filepath.Join(dir, "node_modules", azuritePackage, "dist", "src", "blob", "main.js")
		// By default it closes a connection that was idle for 5 s, perhaps while a
		// client sends the next request, which then has no answer.
		cmd := exec.Command("node", script, "--blobHost", "127.0.0.1", "--blobPort", port, "--blobKeepAliveTimeout", "3600",
			"--inMemoryPersistence", "--disableTelemetry", "--silent")
		cmd.Dir = data
		return cmd
	},
}

// Azurite starts an in-memory Azurite, Microsoft's emulator of Azure Blob
// Storage, for the length of the test. It comes from npm and needs Node.js. Its
// account is AzuriteAccount, whose address is the Endpoint plus "/" and the
// account's name.
func Azurite(tb testing.TB) Server {
	tb.Helper()
	return run(tb, &azurite)
}

func fetchAzurite(ctx context.Context, dir string) error {
	if err := haveTool("npm", npmAdvice); err != nil {
		return err
	}
	return npmInstall(ctx, dir, azuritePackage+"@"+azuriteVersion)
}
