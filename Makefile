# A few lines over CMake. `make run` and `make test` set up a fresh Debian machine by themselves.
.PHONY: run build test test-long survey survey-vectors survey-real lint bench picture wheel install coverage fuzz docs abi deb hooks clean

build:
	@tools/setup build
	@cmake --preset release > build-configure.log 2>&1 || { cat build-configure.log; exit 1; }
	@rm -f build-configure.log
	@cmake --build --preset release

run: build
	@tools/run

test: build
	@tools/setup test docs package
	@tools/test

test-long: build
	@tools/setup test docs package
	@tools/test long

survey: build
	@tools/survey

survey-vectors: build
	@tools/survey_vectors

survey-real: build
	@tools/survey_real

lint: build
	@tools/setup lint
	@tools/lint

bench: build
	@build/psifold bench all --json

picture: build
	@tools/setup test
	@tools/picture

wheel:
	@tools/setup build
	@tools/wheel

install: build
	@cmake --install build

coverage:
	@tools/setup build test
	@tools/coverage

fuzz:
	@tools/setup build lint
	@tools/fuzz

docs:
	@tools/setup docs
	@tools/docs

abi: build
	@tools/setup docs
	@tools/abi

deb: build
	@tools/setup package
	@cpack --config build/CPackConfig.cmake -B build/packages
	@ls build/packages/*.deb

hooks:
	@git config core.hooksPath tools/hooks

clean:
	rm -rf build build-* dist
