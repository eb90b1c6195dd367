module github.com/lambdalock/lambdalock/tools/mutants

go 1.25.0
