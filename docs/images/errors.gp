# gnuplot errors.gp draws errors.svg, errors-dark.svg and errors.png from errors.dat
set encoding utf8
DATA = 'errors.dat'
do for [look in 'light dark png'] {
    reset
    dark = look eq 'dark'
    ink = dark ? '#e6e9ec' : '#1b1f24'
    muted = dark ? '#a4adb6' : '#57606a'
    line = dark ? '#3a424a' : '#d0d7de'
    paper = dark ? '#14171a' : '#ffffff'
    accent = dark ? '#56b4e9' : '#0072b2'
    if (look eq 'png') {
        set terminal pngcairo noenhanced size 1260,680 font 'sans,12' fontscale 2 linewidth 2 pointscale 2 background rgb paper
        set output 'errors.png'
    } else {
        set terminal svg noenhanced size 630,340 font 'sans-serif,13' background rgb paper
        set output dark ? 'errors-dark.svg' : 'errors.svg'
    }
    set border 3 lc rgb muted
    set tics nomirror textcolor rgb ink
    set key textcolor rgb ink
    set style fill solid noborder
    set xlabel 'refinement' textcolor rgb ink
    set ylabel 'error per step of an episode' textcolor rgb ink
    unset key
    set xrange [0.4:10.6]
    set yrange [0:0.406969]
    set boxwidth 0.5
    set grid ytics lc rgb line
    plot DATA index 2 using 1:2 with lines dt 2 lw 1.5 lc rgb '#d55e00', \
         DATA index 1 using 1:2 with points pt 7 ps 0.3 lc rgb muted, \
         '' index 0 using 1:3:2:6:5:xtic(7) with candlesticks whiskerbars 0.6 fs solid 0.35 border lc rgb accent lw 1.3, \
         '' index 0 using 1:4:4:4:4 with candlesticks fs solid lc rgb ink lw 2.2
    unset output
}
