package invoke

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
)

// findBootstrap returns the path of the function. A name without a slash is a
// file in the current folder, where os/exec does not look, or else a program in
// PATH.
func findBootstrap(name string) (string, error) {
	const build = "build the function first, for example with\n  go build -tags lambda.norpc -o bootstrap ."
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("%s does not exist: %s", name, build)
		}
		return path, nil
	case err != nil:
		return "", err
	case info.IsDir():
		return "", fmt.Errorf("%s is a folder: name the executable in it, which for Lambda is called bootstrap", name)
	case info.Mode()&0o111 == 0:
		return "", fmt.Errorf("%s is not an executable: if it is the function, chmod +x it, else %s", name, build)
	case info.Size() == 0:
		return "", fmt.Errorf("%s is empty: %s", name, build)
	}
	if !strings.ContainsRune(name, os.PathSeparator) {
		name = "." + string(os.PathSeparator) + name
	}
	return name, nil
}
