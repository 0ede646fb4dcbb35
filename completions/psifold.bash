# bash completion for psifold: asks the program itself, so that it is never out of date.
_psifold()
{
    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(psifold --help | awk '$1 == "psifold" && NF > 3 && $2 != "folds" { print $2 }')" -- "$word")
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(psifold "$command" --help=words 2> /dev/null)" -- "$word")
    elif [ "$command" = generate ] && [ "$COMP_CWORD" -eq 2 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(psifold tasks --names 2> /dev/null)" -- "$word")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}
complete -o filenames -F _psifold psifold
