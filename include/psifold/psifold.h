// psifold/psifold.h: the whole public API, one header per room.
#ifndef PSIFOLD_H
#define PSIFOLD_H

#include <psifold/agent.h>
#include <psifold/base.h>
#include <psifold/cluster.h>
#include <psifold/data.h>
#include <psifold/env.h>
#include <psifold/evidence.h>
#include <psifold/mdp.h>
#include <psifold/nn.h>
#include <psifold/report.h>
#include <psifold/study.h>

#endif
